// Line charts of a run's steps: decimated to the pixels, with a caption that counts what isn't visible. UI thread,
// inside a frame.
#pragma once

#include <imgui.h>

#include <span>
#include <string>
#include <vector>

#include "app/curves/min_max_pyramid.h"
#include "app/desktop/command.h"
#include "storage/records.h"

namespace stepladder {

struct Curve {
  std::string label = {};
  std::span<const double> x;  // ascending
  std::span<const double> y;  // missing values are skipped
  ImVec4 colour = {};
  float weight = 1.5f;
  bool in_legend = true;
  bool points = false;                    // marks instead of a line (validation losses)
  bool has_dots = false;                  // a mark at each point of the line too
  int order = 0;                          // its place in the legend, independent of the drawing order
  bool is_context = false;                // the y range includes it only near the other curves
  int number = 0;                         // its look's (rung_dash); with line styles on each number has its own dashes
  const MinMaxPyramid* levels = nullptr;  // of y, so that a frame doesn't scan all of it; null: scan it
  std::span<const double> smoothed = {};  // drawn in the curve's colour, y thin behind it
  std::span<const double> low = {};       // a band around y, if any
  std::span<const double> high = {};
  std::span<const int> runs = {};  // how many runs each y is the mean of; empty: it is one run's
  double steady_from = missing;    // x: the warm-up before it doesn't decide a y range that starts at zero
  std::size_t not_finite = 0;      // NaN or infinite values behind the points, besides those in y
  bool hidden = false;             // only in the legend, in grey
  bool stands_out = false;         // a line above the picture where the curves are too many for lines
};

// The mouse's effect on the legend in this frame: the curves' `order`, or -1.
struct LegendInput {
  bool has_room = true;  // false: the plot is too low for a legend of its curves
  int hovered = -1;
  int clicked = -1;
  int double_clicked = -1;
  int alt_clicked = -1;
  int right_clicked = -1;
};

// A height that the user drags with the mouse, in all charts that share it.
struct TargetLine {
  double value = missing;  // missing: there is none
  bool is_held = false;    // the mouse held it in the last frame: meanwhile the y axes stay
  bool is_taken = false;   // and holds it in this one

  void begin_frame() {
    is_held = is_taken;
    is_taken = false;
  }
};

// A labelled place of the x axis.
struct ChartTick {
  double x = 0;
  std::string words;
};

// An event at an x: a thin line with a tooltip.
struct ChartMark {
  double x = 0;
  std::string words;
  ImVec4 colour;
};

// State that the charts of one view share: the zoomed x range, the mouse's place and two cursors.
struct SharedX {
  double low = missing;  // missing: everything
  double high = missing;
  double hovered = missing;  // x under the mouse in one of them; kept for a frame
  double a = missing;        // cursors: the keys A and B place them under the mouse, Escape removes them
  double b = missing;
  bool fresh = false;  // `hovered` was set in this frame

  void begin_frame();
  bool zoomed() const { return !is_missing(low); }
};

struct Chart {
  const char* id = "";
  std::string title;
  std::string note;  // in grey before the counts
  std::string x_label;
  std::string unit;           // of y, for the read-out: "ms"
  std::vector<Curve> curves;  // drawn in this order, the last on top
  double floor = missing;     // a labelled horizontal line, e.g. a source's entropy
  std::string floor_label;
  double x_until = missing;       // x reaches at least this far: the planned end of a running run
  double whole = missing;         // y is a share of it (100 for %), and the axis spans all of it
  bool from_zero = false;         // y starts at 0, and the highest 2 % may be off-screen
  bool falls = false;             // a steep fall at the beginning is off-screen, until one zooms
  bool steps_up = false;          // stairs (an ECDF) instead of lines
  bool log_x = false;             // every x must be positive
  bool log_y = false;             // values that aren't positive are off-screen
  double shaded_until = missing;  // from the left edge to here in grey: the warm-up
  double band_low = missing;      // a band of heights in which values count as the same
  double band_high = missing;
  double zero_line = missing;  // a thin horizontal line, e.g. "no difference"
  std::vector<ChartMark> marks;
  std::vector<ChartTick> x_ticks;  // instead of round numbers; x reaches all of them
  bool legend = true;
  bool x_labelled = true;               // false if the chart below labels it
  std::vector<std::string> caption;     // below the exported figure: hardware, n, method (caption_of)
  std::string smoothing;                // in words, for the caption
  SharedX* shared = nullptr;            // null: the chart has its own
  LegendInput* legend_input = nullptr;  // null: the legend doesn't answer to the mouse
  TargetLine* target = nullptr;
  Commands* commands = nullptr;      // for the context menu; null: no menu
  std::size_t most_points = 60'000;  // drawn of all curves together; more curves than they suffice for are one picture
  float title_room = 0;              // pixels at the right of the title that the caption leaves free
  ImVec2 size = ImVec2(0, 0);
  std::string if_empty = "Nothing recorded";  // instead of the plot, while no curve has a point
};

// Draws the title, a caption and the plot. The wheel zooms along x, dragging pans, and y follows what is visible; over
// the y axis both move y. O excludes the lowest and highest 2 % from the y range, so that a spike doesn't flatten the
// rest. A double click shows everything again. Until the user touches it, the chart follows its data.
void draw_chart(const Chart& chart);

// Sets whether curves also differ in their dashes.
void use_line_styles(bool on);

}  // namespace stepladder
