// Line charts over a run's steps: decimated to the pixels, nothing hidden without a word. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <span>
#include <string>
#include <vector>

#include "app/curves/min_max_pyramid.h"
#include "app/desktop/commands.h"
#include "storage/records.h"

namespace stepladder {

struct Curve {
  std::string label;
  std::span<const double> x;  // ascending
  std::span<const double> y;  // missing values are passed over
  ImVec4 colour;
  float weight = 1.5f;
  bool in_legend = true;
  bool points = false;                    // marks instead of a line (validation losses)
  int order = 0;                          // its place in the legend, whatever is drawn on top
  bool is_context = false;                // y makes room for it only near the others' values
  int dash = 0;                           // which pattern, where line styles are on; 0: solid
  const MinMaxPyramid* levels = nullptr;  // of y, so that a frame need not look at all of it; null: it does
  std::span<const double> smoothed;       // drawn in the curve's colour, y thin behind it
  std::span<const double> low;            // a band around y, where there is one
  std::span<const double> high;
};

// Something that happened at an x: a thin line with words on hover.
struct ChartMark {
  double x = 0;
  std::string words;
  ImVec4 colour;
};

// What the charts of one view share: the x range that was zoomed to, where the mouse is, and two cursors.
struct SharedX {
  double low = missing;  // missing: everything there is
  double high = missing;
  double hovered = missing;  // under the mouse in one of them; kept for a frame
  double a = missing;        // cursors: the keys A and B put them under the mouse, Escape takes them away
  double b = missing;
  bool fresh = false;  // `hovered` was set in this frame

  void begin_frame();
  bool zoomed() const { return !is_missing(low); }
};

struct Chart {
  const char* id = "";
  std::string title;
  std::string note;  // what the title leaves open, in grey before the counts
  std::string x_label;
  std::string unit;           // of y, for the read-out: "ms"
  std::vector<Curve> curves;  // drawn in this order, the last on top
  double floor = missing;     // a horizontal line with a word, e.g. a source's entropy
  std::string floor_label;
  bool from_zero = false;         // y starts at 0, and the highest 2 % may be off-screen
  bool steps_up = false;          // stairs (an ECDF) instead of lines
  bool log_x = false;             // then every x is greater than 0
  bool log_y = false;             // values that are not positive are off-screen
  double shaded_until = missing;  // from the left edge to here in grey: the warm-up
  double band_low = missing;      // between these two heights nothing differs: a grey band
  double band_high = missing;
  double zero_line = missing;  // a quiet horizontal line, e.g. "no difference"
  std::vector<ChartMark> marks;
  bool legend = true;
  bool x_labelled = true;            // false where the chart beneath says it
  std::vector<std::string> caption;  // beneath the exported figure: hardware, n, method (caption_of)
  std::string smoothing;             // in words, for the line under the title
  SharedX* shared = nullptr;         // null: on its own
  Commands* commands = nullptr;      // for the menu of the right button; null: no menu
  std::size_t most_points = 80'000;  // that are drawn of all curves together, so that a thousand of them cost no more
  float title_room = 0;              // pixels at the right of the title that the caption leaves to others
  ImVec2 size = ImVec2(0, 0);
};

// Title, a line that says what is drawn, and the plot. The wheel zooms along x and drag pans, y follows what is in
// sight; over the y axis both take y; O leaves the lowest and highest 2 % off-screen, so that a spike does not flatten
// the rest; a double click shows everything again. While nobody has touched it the chart follows its data.
void draw_chart(const Chart& chart);

// Whether curves are told apart by dashes too.
void use_line_styles(bool on);

}  // namespace stepladder
