// Everything that can be asked for by name: the keys and the command palette (Ctrl+K) are two faces of one list.
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
  std::string detail;               // in grey behind the title, searched too
};

class Workspace;
struct Panel;

// What the window as a whole can do, with keys.
std::vector<Action> window_actions(const std::vector<Panel>& panels, const Workspace& workspace);

// Ladders and runs to go to; the palette's own, since there may be thousands.
std::vector<Action> places_to_go(const Workspace& workspace);

// Whether a key of the keyboard went down or repeats in this frame: only then is there a chord
// to look for. UI thread, inside the frame.
bool any_key_pressed();

// "Ctrl+Shift+T"
std::string key_text(ImGuiKeyChord key);

// How well `text` answers to what was typed: every letter in order, better where they stand together or begin words.
// nullopt: not at all.
std::optional<int> fuzzy_score(const std::string& typed, const std::string& text);

}  // namespace stepladder
