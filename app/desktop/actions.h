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

// A score of how well `text` matches `typed`: every letter in order; adjacent letters and beginnings of words score
// higher. nullopt: no match.
std::optional<int> fuzzy_score(const std::string& typed, const std::string& text);

}  // namespace stepladder
