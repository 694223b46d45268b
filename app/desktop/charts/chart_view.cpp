// Derives a chart's frame before anything is drawn: x range, decimated curves, y range, the legend's corner, ticks. All
// curves share `most_points`, so a thousand curves cost no more than ten; the buffers are kept from frame to frame.
#include "app/desktop/charts/chart_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "app/desktop/charts/chart_density.h"
#include "app/desktop/theme.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

Range padded(Range range, double share) {
  if (!range.known()) return {0, 1};
  double room = (range.high - range.low) * share;
  if (room <= 0) room = std::max(std::fabs(range.high) * 0.05, 1e-6);
  return {range.low - room, range.high + room};
}

Range x_range(const Chart& chart) {
  Range range;
  for (const Curve& curve : chart.curves) {
    if (curve.x.empty()) continue;
    range.include(curve.x.front());
    range.include(curve.x.back());
  }
  if (!range.known()) return {0, 1};
  range.include(chart.x_until);
  for (const ChartTick& tick : chart.x_ticks) range.include(tick.x);
  if (chart.log_x) return {range.low / 1.15, range.high * 1.15};
  if (range.low == range.high) return {range.low - 1, range.high + 1};
  if (!chart.x_ticks.empty()) return padded(range, 0.06);
  return padded(range, 0.01);
}

// The range of a curve's visible values and of its band, without the lowest and highest `left_out` of them.
Range visible_range(const Chart& chart, const CurveView& curve, Range x, double steady_from, double left_out) {
  if (chart.from_zero && steady_from < x.high) x.low = std::max(x.low, steady_from);
  Range range;
  std::vector<double> values;
  for (const Polyline* line : {&curve.line, &curve.low, &curve.high}) {
    for (std::size_t i = 0; i < line->y.size(); ++i) {
      const double y = line->y[i];
      if (line->x[i] < x.low || line->x[i] > x.high || (chart.log_y && y <= 0)) continue;
      if (left_out > 0 && std::isfinite(y)) values.push_back(y);
      if (left_out <= 0) range.include(y);
    }
  }
  if (values.empty()) return range;
  for (const double share : {left_out, 1 - left_out}) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * share);
    std::nth_element(values.begin(), at, values.end());
    range.include(*at);
  }
  return range;
}

bool starts_at_zero(const Chart& chart) {
  return chart.from_zero && !chart.log_y;
}

// The range of each curve's visible values within `x`; `leave_out` excludes the lowest and highest 2 % of each. By
// curve, since a short curve may be fewer than 2 % of all values.
std::vector<Range> visible_ranges(const Chart& chart, std::span<const CurveView> curves, const Range& x,
                                  bool leave_out) {
  std::vector<Range> ranges;
  for (const CurveView& curve : curves) {
    const bool is_short = curve.line.x.size() < 20 && !leave_out;  // each value counts
    const double left_out = leave_out || (starts_at_zero(chart) && !is_short) ? 0.02 : 0;
    ranges.push_back(visible_range(chart, curve, x, chart.curves[ranges.size()].steady_from, left_out));
  }
  return ranges;
}

// Of losses that are highest at the very beginning and fall steeply the ranges in the later nine tenths, where the
// curves differ; else those of all that is visible.
std::vector<Range> ranges_after_fall(const Chart& chart, const ChartView& view) {
  constexpr double beginning = 0.02, first_part = 0.1, most_flat = 4;
  const auto ranges_in = [&](double from, double to) {
    const double width = view.x.high - view.x.low;
    return visible_ranges(chart, view.curves, {view.x.low + from * width, view.x.low + to * width}, false);
  };
  const auto together = [](std::span<const Range> ranges) {
    Range all;
    for (const Range& each : ranges)
      if (each.known()) all.include(each.low), all.include(each.high);
    return all;
  };
  std::vector<Range> whole = ranges_in(0, 1), later = ranges_in(first_part, 1);
  const Range all = together(whole), rest = together(later), first = together(ranges_in(0, beginning));
  const bool falls = first.known() && rest.known() && first.high >= all.high && rest.high > rest.low &&
                     all.high - all.low > most_flat * (rest.high - rest.low);
  return falls ? later : whole;
}

// The range for these curves' visible ranges.
Range y_range(const Chart& chart, std::span<const Range> visible, bool leave_out) {
  if (chart.steps_up) return {0, 1.03};
  if (!is_missing(chart.whole)) return {0, 1.03 * chart.whole};  // labels end at the whole
  Range range;
  Range focus;  // of the curves that are not context
  for (std::size_t k = 0; k < visible.size(); ++k) {
    if (!visible[k].known()) continue;
    for (const double end : {visible[k].low, visible[k].high}) {
      range.include(end);
      if (!chart.curves[k].is_context) focus.include(end);
    }
  }
  if (starts_at_zero(chart)) {
    constexpr double most_context = 1.5;  // of the highest curve that is not context
    const double high = focus.known() && focus.high > 0 ? std::min(range.high, most_context * focus.high) : range.high;
    return {0, range.known() && high > 0 ? high * 1.2 : 1};
  }
  if (focus.known() && !leave_out) {
    const double room = std::max(focus.high - focus.low, 1e-9);
    range.high = std::min(range.high, focus.high + room);
    range.low = std::max(range.low, focus.low - 4 * room);
  }
  // While the mouse drags the target, the axis stays.
  if (range.known() && chart.target && !chart.target->is_held && (!chart.log_y || chart.target->value > 0))
    range.include(chart.target->value);
  if (range.known() && !is_missing(chart.zero_line)) range.include(chart.zero_line);
  if (range.known() && !is_missing(chart.band_low)) range.include(chart.band_low), range.include(chart.band_high);
  // A floor far below would flatten the curves, so it enters the range only once they are near.
  if (range.known() && chart.floor >= range.low - (range.high - range.low)) {
    const double height = range.high - std::min(range.low, chart.floor);
    range.include(chart.floor);
    if (!chart.log_y && !chart.floor_label.empty()) range.include(chart.floor - 0.08 * height);  // room for its label
  }
  if (chart.log_y) return range.known() ? Range{range.low / 1.1, range.high * 1.1} : Range{0.1, 10};
  return padded(range, 0.05);
}

int plain_axis_number(double value, char* text, int size, void* range) {
  const auto* axis = static_cast<const Range*>(range);
  const std::string label = in_print(plain_axis_text(value, axis->high - axis->low));
  return std::snprintf(text, static_cast<std::size_t>(size), "%s", label.c_str());
}

// `range` is the axis's, or an unknown one if its width doesn't matter.
int axis_number(double value, char* text, int size, void* range) {
  const auto* axis = static_cast<const Range*>(range);
  const std::string label = in_print(axis_text(value, axis->high - axis->low));
  return std::snprintf(text, static_cast<std::size_t>(size), "%s", label.c_str());
}

// 1, 2 and 5 of each decade, since decades alone leave most log axes with one number.
void set_up_log_ticks(ImAxis axis, const Range& range) {
  std::vector<double> ticks;
  for (double decade = std::pow(10, std::floor(std::log10(range.low))); decade <= range.high; decade *= 10) {
    for (const double value : {decade, 2 * decade, 5 * decade}) {
      if (value >= range.low && value <= range.high) ticks.push_back(value);
    }
  }
  if (ticks.size() < 2 || ticks.size() > 12) return;
  ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()));
}

// Sets at most `most` labels of an axis, at multiples of 1, 2 or 5 times a power of ten. ImPlot's own would overlap in
// a low plot, and leave a narrow one with a single line.
void set_up_ticks(ImAxis axis, const Range& range, int most) {
  const double width = range.high - range.low;
  if (!(width > 0) || !std::isfinite(width)) return;
  constexpr int most_in_any_plot = 12;
  const auto room = static_cast<std::size_t>(std::clamp(most, 2, most_in_any_plot));
  std::vector<double> ticks;
  std::vector<double> finer;
  double decade = std::pow(10, std::floor(std::log10(width)) - 2);
  for (int i = 0; ticks.empty() || ticks.size() > room; ++i) {
    const double step = decade * std::array{1, 2, 5}[static_cast<std::size_t>(i % 3)];
    if (i % 3 == 2) decade *= 10;
    finer = std::exchange(ticks, {});
    for (double at = std::ceil(range.low / step); at <= range.high / step; ++at) ticks.push_back(at * step + 0.0);
    if (step > width) break;
  }
  if (ticks.size() < 2 && finer.size() >= 2)  // one label doesn't show a scale
    ticks = finer.size() <= room + 1 ? finer : std::vector{finer.front(), finer[finer.size() / 2]};
  if (!ticks.empty()) ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()));
}

void set_up_named_ticks(const std::vector<ChartTick>& named) {
  std::vector<double> places;
  std::vector<const char*> words;
  for (const ChartTick& tick : named) {
    places.push_back(tick.x);
    words.push_back(tick.words.c_str());
  }
  ImPlot::SetupAxisTicks(ImAxis_X1, places.data(), static_cast<int>(places.size()), words.data());
}

// Sets ticks at whole numbers only: a step 1.2 doesn't exist.
void set_up_whole_ticks(ImAxis axis, const Range& range) {
  std::vector<double> ticks;
  for (double at = std::ceil(range.low); at <= range.high; ++at) ticks.push_back(at);
  if (!ticks.empty()) ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()));
}

// The corner where the legend hides the least of the curves; the top right unless another has less than half as many
// points.
ImPlotLocation emptiest_corner(std::span<const CurveView> curves, const Range& x, const Range& y) {
  constexpr std::array corners{ImPlotLocation_NorthEast, ImPlotLocation_SouthWest, ImPlotLocation_NorthWest,
                               ImPlotLocation_SouthEast};
  std::array<std::size_t, corners.size()> points{};
  for (const CurveView& curve : curves) {
    const Polyline& line = curve.line;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (!(line.x[i] >= x.low && line.x[i] <= x.high)) continue;
      const bool east = line.x[i] > (x.low + x.high) / 2;
      const bool north = line.y[i] > (y.low + y.high) / 2;
      ++points[east ? (north ? 0 : 3) : (north ? 2 : 1)];
    }
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < corners.size(); ++i) {
    if (2 * points[i] < points[best]) best = i;
  }
  return corners[best];
}

// The places at which the band reaches further than at both neighbours by more than the band's own width there: the tip
// of a shaded triangle that is thinner than a pixel can't be seen.
void find_spikes(CurveView& view) {
  const std::vector<double>& low = view.low.y;
  const std::vector<double>& high = view.high.y;
  const auto is_same = [&](std::size_t a, std::size_t b) { return low[a] == low[b] && high[a] == high[b]; };
  for (std::size_t i = 0; i < low.size(); ++i) {  // a column has two places with the same values
    const std::size_t before = i > 1 && is_same(i - 1, i) ? i - 2 : i > 0 ? i - 1 : i + 1;
    const std::size_t after = i + 2 < low.size() && is_same(i + 1, i) ? i + 2 : i + 1 < low.size() ? i + 1 : before;
    if (before >= low.size() || after >= low.size()) continue;
    const double width = std::max(high[before] - low[before], high[after] - low[after]);
    const double above = high[i] - std::max(high[before], high[after]);
    const double below = std::min(low[before], low[after]) - low[i];
    if (std::max(above, below) > width) view.spikes.push_back(i);
  }
}

// The visible part of the band, and a neighbour on each side; if that is too much, the lowest and highest of each
// column's values.
void decimate_band(const Curve& curve, const Range& x, int columns, CurveView& view) {
  view.low = view.high = {};
  view.spikes.clear();
  if (curve.low.empty()) return;
  const auto place = [&](double at) {
    return static_cast<std::size_t>(std::ranges::lower_bound(curve.x, at) - curve.x.begin());
  };
  const std::size_t first = place(x.low) - (place(x.low) > 0 ? 1 : 0);
  const std::size_t end = std::min(place(x.high) + 1, curve.x.size());
  const std::size_t each = (end - std::min(first, end)) / static_cast<std::size_t>(columns) + 1;
  for (std::size_t i = first; i < end; i += each) {
    const std::size_t next = std::min(i + each, end);
    const auto ends = [&](std::span<const double> values) { return values.subspan(i, next - i); };
    const double low = std::ranges::min(ends(curve.low));
    const double high = std::ranges::max(ends(curve.high));
    for (const double at : {curve.x[i], curve.x[next - 1]}) {
      if (!view.low.x.empty() && view.low.x.back() == at) continue;
      view.low.x.push_back(at);
      view.high.x.push_back(at);
      view.low.y.push_back(low);
      view.high.y.push_back(high);
    }
  }
  find_spikes(view);
}

void decimate_curve(const Curve& curve, const Range& x, int columns, CurveView& view) {
  if (curve.hidden) {
    view = {};
    return;
  }
  if (curve.levels) {
    curve.levels->show(curve.x, curve.y, x.low, x.high, columns, view.line);
  } else {
    view.line = decimate(curve.x, curve.y, x.low, x.high, columns);
  }
  view.line.not_finite += curve.not_finite;
  view.smoothed = curve.smoothed.empty() ? Polyline{} : decimate(curve.x, curve.smoothed, x.low, x.high, columns);
  decimate_band(curve, x, columns, view);
}

// The columns of each line, so that all lines together stay within the chart's points: up to four points a column, as
// many again if they are smoothed, and two of a band.
int columns_of_line(const Chart& chart, float width) {
  const auto any = [&](auto&& has) { return std::ranges::any_of(chart.curves, has); };
  const bool smoothed = any([](const Curve& curve) { return !curve.smoothed.empty(); });
  const bool banded = any([](const Curve& curve) { return !curve.low.empty(); });
  const std::size_t points = 4UL + (smoothed ? 4 : 0) + (banded ? 2 : 0);
  const std::size_t share = chart.most_points / (points * std::max<std::size_t>(1, chart.curves.size()));
  return std::max(8, static_cast<int>(std::min(share, static_cast<std::size_t>(width))));
}

// The curves of a chart that is drawn as a picture: those that stand out, as lines.
void derive_dense(const Chart& chart, bool leaves_out, ChartView& view) {
  view.density = &density_of_chart();
  view.density->collect(chart, view.x, leaves_out || starts_at_zero(chart), view.size);
  for (std::size_t i = 0; i < view.curves.size(); ++i) {
    if (chart.curves[i].stands_out || i == view.density->hovered()) {
      decimate_curve(chart.curves[i], view.x, static_cast<int>(view.size.x), view.curves[i]);
    } else if (!view.curves[i].line.x.empty()) {
      view.curves[i] = {};
    }
  }
}

}  // namespace

void Range::include(double value) {
  if (!std::isfinite(value)) return;
  low = known() ? std::min(low, value) : value;
  high = is_missing(high) ? value : std::max(high, value);
}

bool has_points(const Chart& chart) {
  return std::ranges::any_of(chart.curves, [](const Curve& curve) {
    if (curve.not_finite > 0) return true;
    if (curve.levels) return curve.levels->points() + curve.levels->not_finite() > 0;
    return std::ranges::any_of(curve.y, [](double y) { return !is_missing(y); });
  });
}

ChartView derive(const Chart& chart, const Range& zoom, YAxis y_axis, ImVec2 size) {
  static std::vector<CurveView> kept;  // from frame to frame, so that many curves need no new memory
  kept.resize(std::max(kept.size(), chart.curves.size()));
  ChartView view{.size = size, .x = zoom.known() ? zoom : x_range(chart)};
  view.curves = std::span(kept.data(), chart.curves.size());
  const bool leaves_out = y_axis == YAxis::without_outliers;
  if (is_dense(chart)) {
    derive_dense(chart, leaves_out, view);
    if (y_axis != YAxis::free) view.y = y_range(chart, view.density->visible(), leaves_out);
    return view;
  }
  const int columns = columns_of_line(chart, size.x);
  for (std::size_t i = 0; i < view.curves.size(); ++i) decimate_curve(chart.curves[i], view.x, columns, view.curves[i]);
  if (y_axis == YAxis::free) return view;
  const bool may_skip = chart.falls && !chart.log_y && !leaves_out && !zoom.known();
  view.y =
      y_range(chart, may_skip ? ranges_after_fall(chart, view) : visible_ranges(chart, view.curves, view.x, leaves_out),
              leaves_out);
  if (chart.legend) view.legend_corner = emptiest_corner(view.curves, view.x, view.y);
  return view;
}

void set_up_axes(const Chart& chart, const ChartView& view, Range& linked_x) {
  const bool has_room = view.size.y > px(120);
  const char* unit = !has_room || chart.unit.empty() ? nullptr : chart.steps_up ? "share of steps" : chart.unit.c_str();
  ImPlot::SetupAxes(chart.x_label.c_str(), unit,
                    ImPlotAxisFlags_NoHighlight | (chart.x_labelled ? 0 : ImPlotAxisFlags_NoLabel),
                    ImPlotAxisFlags_NoHighlight | (view.y.known() ? ImPlotAxisFlags_Lock : 0));
  // ImPlot hands the range back to axis_number, which only reads it. Instead of null it would hand over a text.
  static const Range unknown;
  const auto range_of = [](const Range& range, bool is_log) {
    return const_cast<Range*>(is_log || !range.known() ? &unknown : &range);
  };
  ImPlot::SetupAxisFormat(ImAxis_X1, axis_number, range_of(view.x, chart.log_x));
  ImPlot::SetupAxisFormat(ImAxis_Y1, chart.unit.empty() ? plain_axis_number : axis_number,
                          range_of(view.y, chart.log_y));
  if (chart.log_x) ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
  if (!chart.x_ticks.empty()) {
    set_up_named_ticks(chart.x_ticks);
  } else if (chart.log_x) {
    set_up_log_ticks(ImAxis_X1, view.x);
  } else if (chart.x_label == "step" && view.x.high - view.x.low < 8) {
    set_up_whole_ticks(ImAxis_X1, view.x);
  } else {
    set_up_ticks(ImAxis_X1, view.x, static_cast<int>(view.size.x / px(48)));
  }
  ImPlot::SetupAxisLinks(ImAxis_X1, &linked_x.low, &linked_x.high);  // limits set in every frame could not be moved
  if (chart.log_y) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  if (view.y.known()) {
    if (chart.log_y) {
      set_up_log_ticks(ImAxis_Y1, view.y);
    } else {
      set_up_ticks(ImAxis_Y1, view.y, static_cast<int>((view.size.y - px(40)) / px(25)));
    }
    ImPlot::SetupAxisLimits(ImAxis_Y1, view.y.low, view.y.high, ImPlotCond_Always);
  }
  ImPlot::SetupLegend(view.legend_corner, chart.legend_input ? ImPlotLegendFlags_NoMenus : ImPlotLegendFlags_NoButtons);
  ImPlot::SetupFinish();
}

OffScreen off_screen(const ChartView& view, const Range& x, const Range& y) {
  OffScreen off;
  if (view.density) {
    for (const Range& curve : view.density->whole()) {
      if (!curve.known()) continue;
      if (curve.low > y.high || curve.high < y.low) {
        ++off.curves;
      } else if (curve.low < y.low || curve.high > y.high) {
        ++off.band;
      }
    }
    return off;
  }
  for (const CurveView& curve : view.curves) {
    const Polyline& line = curve.line;
    std::size_t within_x = 0;
    std::size_t beyond_y = 0;
    for (std::size_t k = 0; k < line.y.size(); ++k) {
      if (line.x[k] < x.low || line.x[k] > x.high) continue;
      ++within_x;
      if (line.y[k] < y.low || line.y[k] > y.high) ++beyond_y;
    }
    for (std::size_t k = 0; k < curve.high.y.size(); ++k) {
      const bool is_visible = curve.high.x[k] >= x.low && curve.high.x[k] <= x.high;
      if (is_visible && (curve.low.y[k] < y.low || curve.high.y[k] > y.high)) ++off.band;
    }
    off.points += line.off_range + beyond_y;
    if (within_x > 0 && beyond_y == within_x) ++off.curves;
  }
  return off;
}

std::string caption(const ChartView& view, const OffScreen& off_screen, bool has_hidden) {
  std::size_t points = 0;
  std::size_t drawn = 0;
  std::size_t not_finite = 0, lost_curves = 0;
  for (const CurveView& curve : view.curves) {
    points += curve.line.points;
    drawn += curve.line.x.size();
    not_finite += curve.line.not_finite;
    lost_curves += curve.line.not_finite > 0 ? 1 : 0;
  }
  if (view.density) not_finite = view.density->not_finite();
  if (!view.density && points + not_finite == 0) return has_hidden ? "all runs are hidden" : "no steps yet";
  const auto count = [](std::size_t value) { return grouped(value); };
  std::string text =
      view.density && view.density->curves() > 0 ? plural(view.density->curves(), "curve") + " as density" : "";
  if (view.density && off_screen.curves > 0) text += ", " + count(off_screen.curves) + " off-screen";
  if (!view.density && (drawn < points || off_screen.points > 0)) text = plural(points, "point");
  if (!view.density && drawn < points) text += ", " + count(drawn) + " drawn";
  if (off_screen.points > 0) text += ", " + count(off_screen.points) + " off-screen";
  if (!view.density && off_screen.curves > 0) text += " (" + plural(off_screen.curves, "whole curve") + ")";
  if (off_screen.band > 0) text += (text.empty() ? "" : ", ") + std::string("extremes off-screen");
  if (not_finite > 0) text += (text.empty() ? "" : ", ") + count(not_finite) + " NaN or infinite";
  if (!view.density && lost_curves > 0 && lost_curves < view.curves.size())  // not all of them, perhaps another run's
    text += " in " + plural(static_cast<std::int64_t>(lost_curves), "curve") + " of " + count(view.curves.size());
  return text;
}

}  // namespace stepladder
