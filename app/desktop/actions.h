// Everything that the user can ask for by name. The keys and the command palette (Ctrl+K) share one list.
#pragma once

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "app/desktop/commands.h"

namespace stepladder {

struct Action {
  std::string title;
  Command command;
  ImGuiKeyChord key = 0;            // 0: by name only
  std::vector<ImGuiKeyChord> also;  // other keys that do the same (a keypad's)
  std::string detail;               // in grey after the title; searched too
};

class Workspace;
struct Panel;

// What the window as a whole can do, with keys.
std::vector<Action> window_actions(const std::vector<Panel>& panels, const Workspace& workspace);

// Ladders and runs to open. Only the palette lists them, since there may be thousands.
std::vector<Action> places_to_go(const Workspace& workspace);

// Whether a key went down or repeats in this frame; otherwise there is no need to look for chords. UI thread, inside
// the frame.
bool any_key_pressed();

// "Ctrl+Shift+T"
std::string key_text(ImGuiKeyChord key);

// How well `text` matches `typed`: every letter in order; adjacent letters and beginnings of words score higher.
// nullopt: not at all.
std::optional<int> fuzzy_score(const std::string& typed, const std::string& text);

}  // namespace stepladder
