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

// Draws the lines by name where they are too many for the first chart's own legend; a click hides or shows one.
void draw_compare_legend(CompareView& view);

}  // namespace stepladder
