// The Compare view's charts: metrics, and their differences from the baseline, in the user's arrangement. UI thread.
#pragma once

#include <imgui.h>

#include <string>

#include "app/desktop/command.h"
#include "app/panels/compare/view.h"

namespace stepladder {

std::string title_of(const GridChart& chart);  // "Loss", "Loss difference"

// Draws the grid within `room`; it scrolls if its rows don't fit. The user drags a chart by its title to another one's
// place, and the space below a row to make all rows higher.
void draw_chart_grid(CompareView& view, ImVec2 room, Commands& commands);

// The height in pixels of the first two rows of charts, or of one if there is no more; a row's is before scaling.
float grid_height(const CompareView& view, float row_height);

// Draws the lines by name where the first chart has no room for its own legend; a click hides or shows one.
void draw_compare_legend(CompareView& view);

}  // namespace stepladder
