// Draws a chart's curves as one picture where they are too many for lines. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/curves/density.h"
#include "app/desktop/charts/chart_view.h"
#include "app/desktop/charts/charts.h"

namespace stepladder {

// Whether a chart's visible curves are more than lines can show within its `most_points`.
bool is_dense(const Chart& chart);

// The pictures of one chart. A picture is made in slices of a frame's time, over some frames, so that no frame waits
// for it; meanwhile the last one is drawn where its values are. It shows every value in view: a curve adds its lowest
// to highest value to each pixel column, or its smoothed values if it is smoothed. Nothing is shared with other
// threads, so curves may change between frames.
class ChartDensity {
 public:
  ChartDensity();
  ~ChartDensity();
  ChartDensity(const ChartDensity&) = delete;
  ChartDensity& operator=(const ChartDensity&) = delete;

  // Works on the curves' ranges within `x` and draws again soon if it isn't done.
  void collect(const Chart& chart, const Range& x, bool leaves_out, ImVec2 size);

  // Of each of the chart's curves as of the last finished look at them, which is this frame's if their number is new:
  // the visible values without those that the y axis leaves out, and all of them.
  const std::vector<Range>& visible() const { return made_.visible; }
  const std::vector<Range>& whole() const { return made_.whole; }
  std::size_t curves() const { return made_.curves; }          // that aren't hidden
  std::size_t not_finite() const { return made_.not_finite; }  // of their values

  // Whether the picture that was drawn last has a curve at a place of the plot.
  bool shows(double x, double y) const;

  // The curve under the mouse as of the last frame.
  std::optional<std::size_t> hovered() const { return hovered_; }

  // Draws the picture. Between BeginPlot and EndPlot.
  void draw(const Chart& chart);

  // Draws what the shades mean, "1 [from faint to full] 740 curves", at ImGui's cursor.
  void draw_key() const;
  float key_width() const;

  int last_frame() const { return last_frame_; }

 private:
  struct Key {
    std::uint64_t curves = 0;  // changes with any of the chart's curves
    PictureAxis x;
    bool log_y = false;
    bool leaves_out = false;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Ranges {
    Key key;
    std::size_t next = 0;  // curve to look at
    std::size_t curves = 0;
    std::size_t not_finite = 0;
    std::vector<ColumnRange> columns;  // of all curves, one after the other; of logarithms on a logarithmic y axis
    std::vector<Range> visible;
    std::vector<Range> whole;
  };

  void forget();
  void look_at(const Curve& curve, bool log_y, Ranges& ranges);
  std::optional<std::size_t> nearest(ImVec2 pixel, bool log_y) const;
  void make_picture(const PictureAxis& y);
  void paint();
  std::string key_end() const;

  std::optional<Ranges> making_;
  Key asked_;                                       // by the last frame
  int frames_at_rest_ = 0;                          // that asked the same
  bool is_sliced_ = false;                          // a hand moves the chart
  std::chrono::steady_clock::time_point deadline_;  // of this frame's slice
  Ranges made_;
  std::vector<ColumnRange> spare_;  // the memory of the last ones
  DensityPicture picture_;          // of `made_`, being made
  std::optional<PictureAxis> picture_y_;
  std::size_t picture_next_ = 0;  // curve to add to it
  std::uint64_t picture_number_ = 0;
  std::optional<PictureAxis> drawn_y_;  // of the picture
  PictureAxis drawn_x_;
  std::uint32_t most_ = 0;    // curves at one place of the picture
  bool key_is_low_ = false;   // the picture's lower right corner is emptier than the upper one
  std::uint64_t number_ = 0;  // of `made_`; 0: nothing is made yet
  std::uint64_t drawn_ = 0;   // the same of the picture
  std::unique_ptr<ImTextureData> texture_;
  std::optional<std::size_t> hovered_;
  int last_frame_ = -1;
  int drawn_frame_ = -1;  // in which draw() was called; it isn't for a plot out of sight
};

// The density of the chart that is being drawn, by ImGui's id; it goes with ImGui's context.
ChartDensity& density_of_chart();

}  // namespace stepladder
