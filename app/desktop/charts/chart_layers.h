// The layers of a chart's plot, from the shaded warm-up up to the cursors. UI thread, between BeginPlot and EndPlot.
#pragma once

#include "app/desktop/charts/chart_view.h"
#include "app/desktop/charts/charts.h"

namespace stepladder {

// What the names of a legend must fit in, so that they don't cover the plot, and what they do without: where one
// doesn't fit, the words with which all begin.
struct LegendRoom {
  float width = 0;
  std::string beginning = {};
};
LegendRoom legend_room(const Chart& chart, float plot_width);

// Draws everything that doesn't depend on the mouse.
void draw_layers(const Chart& chart, const ChartView& view, const LegendRoom& room);

// False if the legend would hide more than half of the plot (more of one whose legend hides curves); the read-out then
// names the curves.
bool has_room_for_legend(const Chart& chart, float height);

// The x nearest to `at` in the topmost curve.
double nearest_x(const Chart& chart, double at);

// A tooltip with every line's value at `x`.
void read_out(const Chart& chart, const ChartView& view, double x);

// The lines' values at `x`, beside the cross-hair of a chart that the mouse isn't over: as many as there is room for.
void draw_values(const Chart& chart, const ChartView& view, double x);

// Fills Chart::legend_input, if the chart wants it.
void use_legend(const Chart& chart, const LegendRoom& room);

// The line that the user may drag, if the chart has one.
void draw_target(const Chart& chart);

// The cross-hair at `hovered`, shown in every chart that shares it, and the cursors A and B.
void draw_cursors(const Chart& chart, double hovered);

}  // namespace stepladder
