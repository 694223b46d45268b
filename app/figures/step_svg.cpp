// Draws two traced steps as icicles on one time axis for the report, with the layout of the Profile view
// (app/profile/slice_layout.h). Drawn twice: once to learn the height, then with the grid behind the slices.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "app/figures/step_pair.h"
#include "app/figures/svg_canvas.h"
#include "app/figures/svg_text.h"
#include "app/profile/kind_colours.h"
#include "app/profile/slice_layout.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

using svg::Canvas;

constexpr double width = 1100, row_height = 15, lane_height = 18, head_height = 24, name_size = 10.5;
constexpr std::uint32_t deepest = 6;   // rows of a lane
constexpr std::size_t most_lanes = 8;  // of a step
constexpr double memory_column = 4;

std::string hex(unsigned colour) {
  return fmt::format("#{:06x}", colour);
}

struct Scale {
  TimeRange shown;
  double left = svg::margin, room = width - 2 * svg::margin;
  double at(double ns) const { return left + (ns - shown.from_ns) / shown.length() * room; }
};

class StepDrawing {
 public:
  StepDrawing(Canvas& canvas, const Scale& scale, bool is_dark) : canvas_(canvas), scale_(scale), is_dark_(is_dark) {}

  // Returns the y below it.
  double draw(const TracedSide& side, const std::string& what, double top) {
    const StepSlices& step = side.slices;
    const SliceIndex index(step);
    const std::string title = step_title(step, what + ": " + side.label, true);
    canvas_.text(scale_.left, top + 15, title, svg::text_size, canvas_.colours.text, svg::Anchor::start, true);
    canvas_.text(scale_.left + text_width(title, svg::text_size) * 1.08 + 12, top + 15, step_detail(step),
                 svg::small_size, canvas_.colours.quiet);
    double y = top + head_height;
    std::size_t lanes = 0, hidden = 0;
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      const bool begins_lane = row == 0 || step.rows[row].lane != step.rows[row - 1].lane;
      lanes += begins_lane;
      if (lanes > most_lanes || step.rows[row].depth >= deepest) {
        ++hidden;
        continue;
      }
      if (begins_lane) {
        const SliceLane& lane = step.lanes[step.rows[row].lane];
        canvas_.text(scale_.left, y + 13, (lane.on_gpu ? "GPU " : "CPU ") + lane.title, svg::small_size,
                     canvas_.colours.quiet);
        y += lane_height;
      }
      draw_row(step, row, index, y);
      y += row_height;
    }
    flush();
    if (hidden > 0) {
      canvas_.text(scale_.left, y + 13, plural(hidden, "deeper row isn't", "deeper rows aren't") + " drawn",
                   svg::small_size, canvas_.colours.quiet);
      y += lane_height;
    }
    if (!step.memory.empty()) y = draw_memory(step, y + 4);
    const double end = scale_.at(static_cast<double>(step.length_ns));
    canvas_.line(end, top + head_height, end, y, canvas_.colours.text, 1, "3 2");
    return y;
  }

 private:
  // The memory in use, stacked by what it is used for. Returns the y below it.
  double draw_memory(const StepSlices& step, double top) {
    const MemoryPoint& peak = memory_peak(step);
    double x = scale_.left;
    const auto say = [&](const std::string& words, const std::string& colour) {
      canvas_.text(x, top + 11, words, svg::small_size, colour);
      x += text_width(words, svg::small_size) + 8;
    };
    say(memory_title(step), canvas_.colours.quiet);
    constexpr double height = 50;
    const double bottom = top + 16 + height;
    const auto most = static_cast<double>(std::max<std::int64_t>(peak.total(), 1));
    const std::vector<const MemoryPoint*> columns =
        memory_columns(step, scale_.shown, static_cast<std::size_t>(scale_.room / memory_column));
    std::vector<double> below(columns.size());
    for (const MemoryUse use : all_memory_uses) {
      const KindColour colour = colour_of(use);
      const std::string fill = hex(is_dark_ ? colour.on_dark : colour.on_light);
      const auto number = static_cast<std::size_t>(use);
      if (peak.bytes[number] > 0)
        say(std::string(to_string(use)) + " " + bytes_text(static_cast<double>(peak.bytes[number])), fill);
      std::string path;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (!columns[i] || columns[i]->bytes[number] <= 0) continue;
        const double share = static_cast<double>(columns[i]->bytes[number]) / most * height;
        path += fmt::format("M{} {}h{}v-{}h-{}z", svg::decimal(scale_.left + memory_column * static_cast<double>(i)),
                            svg::decimal(bottom - below[i]), svg::decimal(memory_column), svg::decimal(share),
                            svg::decimal(memory_column));
        below[i] += share;
      }
      if (!path.empty()) canvas_.area(path, fill, 0.75);
    }
    return bottom + 2;
  }

  void draw_row(const StepSlices& step, std::size_t row, const SliceIndex& index, double y) {
    drawn_.clear();
    lay_out_row(step.rows[row], row, index, {}, scale_.shown, static_cast<float>(scale_.room), drawn_);
    for (const DrawnSlice& piece : drawn_) {
      const double x = scale_.left + std::max(0.0f, piece.x0);
      const double end = std::min(scale_.left + static_cast<double>(piece.x1), scale_.left + scale_.room);
      const bool is_one = piece.count == 1;
      const double length = std::max(end - x - (is_one && end - x > 4 ? 1 : 0), 0.5);
      const int opacity = is_one ? 92 : static_cast<int>(std::lround(30 + 60 * static_cast<double>(piece.cover)));
      paths_[{piece.kind, opacity}] +=
          fmt::format("M{} {}h{}v{}h-{}z", svg::decimal(x), svg::decimal(y), svg::decimal(length),
                      svg::decimal(row_height - 1), svg::decimal(length));
      if (!is_one || length < 34) continue;
      const std::string& full = step.names[step.rows[row].slices[piece.first].name];
      const std::string name = full.starts_with("aten::") ? full.substr(6) : full;
      labels_.push_back({x + 3, y + 10.5, shortened(name, length - 5, name_size)});
    }
  }

  // Names are above all slices.
  void flush() {
    for (const auto& [key, path] : paths_) {
      const KindColour colour = colour_of(key.first);
      canvas_.area(path, hex(is_dark_ ? colour.on_dark : colour.on_light), key.second / 100.0);
    }
    for (const Label& label : labels_) canvas_.text(label.x, label.y, label.text, name_size, "#0d1117");
    paths_.clear();
    labels_.clear();
  }

  struct Label {
    double x, y;
    std::string text;
  };
  Canvas& canvas_;
  const Scale& scale_;
  bool is_dark_;
  std::vector<DrawnSlice> drawn_;
  std::map<std::pair<OperatorKind, int>, std::string> paths_;
  std::vector<Label> labels_;
};

void draw_axis(Canvas& canvas, const Scale& scale, double top, double bottom) {
  const bool is_short = scale.shown.length() < 1e6;
  const double unit = is_short ? 1e3 : 1e6;
  const FigureRange range{scale.shown.from_ns / unit, scale.shown.to_ns / unit};
  for (const Tick& tick : ticks(range, false, 10)) {
    const double x = scale.at(tick.value * unit);
    canvas.line(x, top, x, bottom, canvas.colours.grid, 1);
    const std::string label = tick.label + (is_short ? " us" : " ms");
    if (x + 3 + text_width(label, svg::small_size) < width - svg::margin)
      canvas.text(x + 3, top + 10, label, svg::small_size, canvas.colours.quiet);
  }
}

double draw_legend(Canvas& canvas, const StepPair& pair, bool is_dark, double top) {
  std::array<bool, all_operator_kinds.size()> is_there{};
  for (const StepSlices* step : {&pair.before.slices, &pair.after.slices}) {
    for (const SliceRow& row : step->rows)
      for (const KeptSlice& slice : row.slices) is_there[static_cast<std::size_t>(slice.kind)] = true;
  }
  double x = svg::margin, y = top;
  for (const OperatorKind kind : all_operator_kinds) {
    if (!is_there[static_cast<std::size_t>(kind)]) continue;
    const std::string name(to_string(kind));
    const double length = 15 + text_width(name, svg::small_size) + 16;
    if (x + length > width - svg::margin) {
      x = svg::margin;
      y += 18;
    }
    const KindColour colour = colour_of(kind);
    canvas.box(x, y, 10, 10, hex(is_dark ? colour.on_dark : colour.on_light), 2);
    canvas.text(x + 15, y + 9, name, svg::small_size, canvas.colours.quiet);
    x += length;
  }
  return y + 18;
}

}  // namespace

std::string step_pair_svg(const StepPair& pair, Theme theme, const std::string& id) {
  const bool is_dark = theme == Theme::dark;
  Canvas canvas(svg::palette_of(theme), id);
  Scale scale;
  scale.shown = {static_cast<double>(std::min(first_ns(pair.before.slices), first_ns(pair.after.slices))),
                 static_cast<double>(std::max(last_ns(pair.before.slices), last_ns(pair.after.slices)))};
  if (scale.shown.length() <= 0) scale.shown.to_ns = scale.shown.from_ns + 1;
  const double top = draw_legend(canvas, pair, is_dark, 8) + 6;
  // The grid is behind the slices, whose height is known once they are laid out on a canvas that is thrown away.
  const auto draw_steps = [&](Canvas& target) {
    StepDrawing drawing(target, scale, is_dark);
    const double middle = drawing.draw(pair.before, "before", top + 16) + 10;
    return drawing.draw(pair.after, "after", middle);
  };
  Canvas measured(svg::palette_of(theme), id);
  const double bottom = draw_steps(measured);
  draw_axis(canvas, scale, top, bottom);
  draw_steps(canvas);
  return canvas.finish(width, bottom + 6,
                       "A step of " + pair.before.label + " and one of " + pair.after.label + ", slice by slice");
}

}  // namespace stepladder
