// A chart's content in one frame: ranges, decimated curves and ticks, derived before anything is drawn. UI thread.
#pragma once

#include <implot.h>

#include <span>
#include <string>
#include <vector>

#include "app/curves/decimate.h"
#include "app/desktop/charts/charts.h"

namespace stepladder {

class ChartDensity;

struct Range {
  double low = missing;
  double high = missing;
  bool known() const { return !is_missing(low); }
  void include(double value);
};

// A curve reduced to the pixels.
struct CurveView {
  Polyline line;
  Polyline smoothed;  // empty: the curve isn't smoothed
  Polyline low;       // of its band, at the same x as `high`; empty: no band
  Polyline high;
  std::vector<std::size_t> spikes;  // places of the band that stand out from both neighbours
};

struct ChartView {
  ImVec2 size;
  Range x;
  Range y;                           // unknown: the user controls y
  std::span<CurveView> curves = {};  // one for each of the chart's; valid until the next derive()
  ChartDensity* density = nullptr;   // the curves are one picture, and only those that stand out are lines too
  ImPlotLocation legend_corner = ImPlotLocation_NorthEast;
};

// The range of y: set by ImPlot and the mouse, fitted to every visible value, or to all but the lowest and highest 2 %.
enum class YAxis { free, fitted, without_outliers };

bool has_points(const Chart& chart);

// Derives the view. `zoom` unknown: everything. `size` is the plot's.
ChartView derive(const Chart& chart, const Range& zoom, YAxis y_axis, ImVec2 size);

// Call between BeginPlot and the first item. The mouse changes `linked_x` when the plot ends.
void set_up_axes(const Chart& chart, const ChartView& view, Range& linked_x);

// The values outside the plot's limits or the x range, and the curves with nothing but such values in the x range.
struct OffScreen {
  std::size_t points = 0;
  std::size_t curves = 0;
  std::size_t band = 0;  // places where a band leaves the plot
};
OffScreen off_screen(const ChartView& view, const Range& x, const Range& y);

// The points that aren't drawn as they are: "1,000 points, 800 drawn, 3 off-screen, 1 NaN or infinite"; empty if
// everything is.
std::string caption(const ChartView& view, const OffScreen& off_screen, bool has_hidden = false);

}  // namespace stepladder
