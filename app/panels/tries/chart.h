// The chart of the view Tries: the metric by try.
#pragma once

#include <imgui.h>

#include <cstdint>

#include "app/desktop/models/tries_view.h"

namespace stepladder {

// The mark of a verdict: each has a shape of its own, since colour never speaks alone.
void draw_try_mark(ImDrawList* draw, ImVec2 at, const std::string& verdict, float radius);

// Draws kept values as a staircase with intervals, the others as marks, and the noise band of one run around what is
// kept. `selected`: a try's number, or -1. Returns the try under the mouse, or -1.
std::int64_t draw_tries(const TriesView& view, std::int64_t selected, ImVec2 size);

}  // namespace stepladder
