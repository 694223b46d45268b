// Small pictures of what the examples show, drawn from the examples' own figures. UI thread.
#pragma once

#include <imgui.h>

namespace stepladder {

// A ladder's bars with the card's limit, hatched where they pass it.
void draw_impossible_picture(ImVec2 low, ImVec2 high);
void draw_real_picture(ImVec2 low, ImVec2 high);

// Each change as a dot, the kept ones on the staircase of what was kept.
void draw_tries_picture(ImVec2 low, ImVec2 high);

// The two steps by kind of operator, one above the other.
void draw_traces_picture(ImVec2 low, ImVec2 high);

}  // namespace stepladder
