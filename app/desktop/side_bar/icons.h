// The window's icons: lines of one width on a grid of 24 x 24, drawn as vectors, so that they are sharp at any scale.
#pragma once

#include <imgui.h>

#include <string_view>

namespace stepladder {

// Draws the icon of a view (by its id) or of a button ("fold", "unfold", "theme", "search") into a square whose top
// left corner is `at`. An unknown name draws a small circle and returns false.
bool draw_icon(ImDrawList* draw, std::string_view name, ImVec2 at, float size, ImU32 colour);

}  // namespace stepladder
