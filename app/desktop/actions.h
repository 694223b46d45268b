// Actions that the user can invoke by name. The keys and the command palette (Ctrl+K) share one list.
#pragma once

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "app/desktop/command.h"

namespace stepladder {

struct Action {
  std::string title;
  Command command;
  ImGuiKeyChord key = 0;            // 0: none
  std::vector<ImGuiKeyChord> also;  // other keys for the same action (a keypad's)
  std::string detail;               // in grey after the title; searched too
  bool is_place = false;            // a saved view, a ladder or a run, of which there may be thousands
  bool is_dangerous = false;        // discards something: never before what doesn't
};

class Workspace;
struct Panel;

// The actions of the window as a whole, with keys.
std::vector<Action> window_actions(const std::vector<Panel>& panels, const Workspace& workspace);

// Saved views, ladders and runs to open. Only the palette lists them, since there may be thousands.
std::vector<Action> places_to_go(const Workspace& workspace);

// True if a key was pressed or repeats in this frame; if not, callers needn't check for chords. UI thread, inside the
// frame.
bool any_key_pressed();

// "Ctrl+Shift+T"
std::string key_text(ImGuiKeyChord key);

// A score of how well `text` matches `typed`: each typed word is a part of it, or consists of beginnings of its words
// in their order, as "swithem" of "Switch theme". Fewer and earlier pieces score higher. nullopt: no match.
std::optional<int> fuzzy_score(const std::string& typed, const std::string& text);

// The places of the actions that match, the best first: what is called exactly as typed, views and actions with words
// that begin as typed, then places with such words, then looser matches of either; in each of these, what discards
// something is last. Among equals the recently used ones (titles, the newest first) are first, then those whose title
// begins as typed; else they keep their order, and looser matches that of their scores.
std::vector<std::size_t> matching_actions(const std::vector<Action>& actions, const std::string& typed,
                                          const std::vector<std::string>& recent);

}  // namespace stepladder
