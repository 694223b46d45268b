// Line charts over a run's steps: decimated to the pixels, nothing hidden without a word. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <span>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct Curve {
  std::string label;
  std::span<const double> x;  // ascending
  std::span<const double> y;  // missing values are passed over
  ImVec4 colour;
  float weight = 1.5f;
  bool in_legend = true;
  bool points = false;  // marks instead of a line (validation losses)
  int order = 0;        // its place in the legend, whatever is drawn on top
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
  bool from_zero = false;  // y starts at 0, and the highest 2 % may be off-screen
  bool steps_up = false;   // stairs (an ECDF) instead of lines
  bool log_x = false;      // then every x is greater than 0
  bool legend = true;
  ImVec2 size = ImVec2(0, 0);
};

// Title, a line that says what is drawn, and the plot. Drag pans, the wheel zooms, a double click shows everything
// again. While nobody has touched it the chart follows its data.
void draw_chart(const Chart& chart);

}  // namespace stepladder
