#include "app/desktop/charts.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "app/curves/decimate.h"
#include "app/desktop/chart_export.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

struct Range {
  double low = missing;
  double high = missing;
  bool known() const { return !is_missing(low); }
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = known() ? std::min(low, value) : value;
    high = is_missing(high) ? value : std::max(high, value);
  }
};

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
  if (range.low == range.high) return {range.low - 1, range.high + 1};
  if (chart.log_x) return {range.low / 1.15, range.high * 1.15};
  return padded(range, 0.01);
}

// Of what is in sight between `left` and `right`; `leave_out` the lowest and the highest 2 % of it.
Range y_range(const Chart& chart, std::span<const Polyline> lines, double left, double right, bool leave_out) {
  if (chart.steps_up) return {0, 1.03};
  Range range;
  Range focus;  // of the curves that are not context
  std::vector<double> values;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const Polyline& line = lines[k];
    for (std::size_t i = 0; i < line.y.size(); ++i) {
      if (line.x[i] < left || line.x[i] > right || (chart.log_y && line.y[i] <= 0)) continue;
      if (chart.from_zero || leave_out) {
        if (std::isfinite(line.y[i])) values.push_back(line.y[i]);
      } else {
        range.include(line.y[i]);
        if (!chart.curves[k].is_context) focus.include(line.y[i]);
      }
    }
  }
  if (focus.known()) {
    const double room = std::max(focus.high - focus.low, 1e-9);
    range = {std::max(range.low, focus.low - room), std::min(range.high, focus.high + room)};
  }
  const auto at_share = [&](double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * share);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  if (chart.from_zero && !chart.log_y) {
    if (values.empty()) return {0, 1};
    const double most = values.size() < 10 ? std::ranges::max(values) : at_share(0.98);
    return {0, most > 0 ? most * 1.2 : 1};
  }
  if (leave_out && !values.empty()) {
    range = {at_share(0.02), at_share(0.98)};
  } else {
    for (const double value : values) range.include(value);
  }
  if (range.known() && !is_missing(chart.zero_line)) range.include(chart.zero_line);
  if (range.known() && !is_missing(chart.band_low)) range.include(chart.band_low), range.include(chart.band_high);
  // A floor that is still far below would press the curves flat: it comes into sight as they come near.
  if (range.known() && chart.floor >= range.low - (range.high - range.low)) range.include(chart.floor);
  if (chart.log_y) return range.known() ? Range{range.low / 1.1, range.high * 1.1} : Range{0.1, 10};
  return padded(range, 0.05);
}

// "10" and "22.5 k", where a table would say "10.0" and "22.50 k".
int axis_number(double value, char* text, int size, void*) {
  if (std::fabs(value) < 999.5) return std::snprintf(text, static_cast<std::size_t>(size), "%.4g", value);
  std::string number = compact(value);
  const std::size_t unit = number.find(' ');
  const std::size_t point = number.find('.');
  if (point != std::string::npos && unit != std::string::npos) {
    std::size_t end = unit;
    while (end > point && (number[end - 1] == '0' || number[end - 1] == '.')) --end;
    number.erase(end, unit - end);
  }
  return std::snprintf(text, static_cast<std::size_t>(size), "%s", number.c_str());
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

// Labels of a y axis that has room for `most` of them: multiples of 1, 2 or 5 times a power of ten. ImPlot's own would
// stand on top of each other in a low plot.
void set_up_ticks(ImAxis axis, const Range& range, int most) {
  const double width = range.high - range.low;
  if (!(width > 0) || !std::isfinite(width)) return;
  const auto room = static_cast<std::size_t>(std::max(most, 3));
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
  if (ticks.size() < 2 && finer.size() <= room + 1) ticks = finer;  // one label says no scale
  if (!ticks.empty()) ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()));
}

// There is no step 1.2.
void set_up_whole_ticks(ImAxis axis, const Range& range) {
  std::vector<double> ticks;
  for (double at = std::ceil(range.low); at <= range.high; ++at) ticks.push_back(at);
  if (!ticks.empty()) ImPlot::SetupAxisTicks(axis, ticks.data(), static_cast<int>(ticks.size()));
}

// Where the legend hides least of the curves; at the top right unless another corner has less than half as many points.
ImPlotLocation emptiest_corner(std::span<const Polyline> lines, const Range& x, const Range& y) {
  constexpr std::array corners{ImPlotLocation_NorthEast, ImPlotLocation_SouthWest, ImPlotLocation_NorthWest,
                               ImPlotLocation_SouthEast};
  std::array<std::size_t, corners.size()> points{};
  for (const Polyline& line : lines) {
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

// What the line under a chart's title says: nothing is off-screen or not a number without a word.
std::string caption(std::span<const Polyline> lines, std::size_t off_screen) {
  std::size_t points = 0;
  std::size_t drawn = 0;
  std::size_t not_finite = 0;
  for (const Polyline& line : lines) {
    points += line.points;
    drawn += line.x.size();
    not_finite += line.not_finite;
  }
  if (points + not_finite == 0) return "no steps yet";
  std::string text = grouped(static_cast<std::int64_t>(points)) + (points == 1 ? " point, " : " points, ") +
                     grouped(static_cast<std::int64_t>(std::min(drawn, points))) + " drawn, " +
                     grouped(static_cast<std::int64_t>(off_screen)) + " off-screen";
  if (not_finite > 0) text += ", " + grouped(static_cast<std::int64_t>(not_finite)) + " not a number";
  return text;
}

std::size_t nearest_index(std::span<const double> x, double at) {
  const auto after = std::lower_bound(x.begin(), x.end(), at);
  if (after == x.end()) return x.size() - 1;
  if (after == x.begin()) return 0;
  return static_cast<std::size_t>(after - x.begin()) - (at - *(after - 1) < *after - at ? 1 : 0);
}

double nearest_x(const Chart& chart, double at) {
  for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend(); ++curve) {
    if (!curve->x.empty()) return curve->x[nearest_index(curve->x, at)];
  }
  return at;
}

std::string x_text(const Chart& chart, double x) {
  return chart.x_label == "step" ? grouped(std::llround(x)) : compact(x);
}

std::string y_text(const Chart& chart, double y) {
  return chart.unit.empty() ? loss_text(y) : compact(y) + " " + chart.unit;
}

void vertical_line(const char* id, double x, const ImVec4& colour) {
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.Flags = ImPlotItemFlags_NoLegend | ImPlotItemFlags_NoFit;
  ImPlot::PlotInfLines(id, &x, 1, spec);
}

// Every curve's value at the step under the mouse.
void read_out(const Chart& chart, double x_marked) {
  const double at = ImPlot::GetPlotMousePos().x;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(12), px(10)));
  if (ImGui::BeginTooltip()) {
    text_quiet(chart.x_label + " " + x_text(chart, x_marked));
    int rows = 0;
    for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend() && rows < 14; ++curve) {
      if (curve->x.empty() || curve->label.empty() || at > curve->x.back() + 1) continue;
      const std::size_t i = nearest_index(curve->x, at);
      if (is_missing(curve->y[i])) continue;
      ++rows;
      colour_square(curve->colour);
      ImGui::SameLine();
      std::string text = curve->label.substr(0, curve->label.find("##")) + "  " + y_text(chart, curve->y[i]);
      if (i < curve->smoothed.size()) text += "  (smoothed " + y_text(chart, curve->smoothed[i]) + ")";
      ImGui::TextUnformatted(text.c_str());
    }
    for (const ChartMark& mark : chart.marks) {
      if (std::fabs(ImPlot::PlotToPixels(mark.x, 0).x - ImGui::GetMousePos().x) > px(5)) continue;
      ImGui::PushTextWrapPos(px(420));
      text_toned(mark.words, Tone::warning);
      ImGui::PopTextWrapPos();
    }
    ImGui::EndTooltip();
  }
  ImGui::PopStyleVar();
}

// The cross-hair, in every chart that shares it, and the cursors with their letters.
void draw_cursors(const Chart& chart, double hovered) {
  if (!is_missing(hovered)) vertical_line("##hovered", hovered, faded(palette().quiet, 0.6f));
  if (!chart.shared) return;
  ImPlot::PushPlotClipRect();
  for (const auto& [x, letter] : {std::pair(chart.shared->a, "A"), std::pair(chart.shared->b, "B")}) {
    if (is_missing(x)) continue;
    vertical_line(letter, x, palette().accent);
    const ImVec2 at = ImPlot::PlotToPixels(x, ImPlot::GetPlotLimits().Y.Max);
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    draw->AddRectFilled(ImVec2(at.x, at.y), ImVec2(at.x + px(16), at.y + px(18)), u32(palette().accent), px(3));
    draw->AddText(ImVec2(at.x + px(4), at.y + px(1)), u32(palette().background), letter);
  }
  ImPlot::PopPlotClipRect();
}

void draw_marks(const Chart& chart) {
  for (const ChartMark& mark : chart.marks) {
    ImGui::PushID(&mark);
    vertical_line("##mark", mark.x, faded(mark.colour, 0.7f));
    ImGui::PopID();
  }
}

void draw_shade(const Chart& chart) {
  if (!is_missing(chart.band_low)) {
    const ImPlotRect all = ImPlot::GetPlotLimits();
    ImPlot::PushPlotClipRect();
    ImPlot::GetPlotDrawList()->AddRectFilled(ImPlot::PlotToPixels(all.X.Min, chart.band_high),
                                             ImPlot::PlotToPixels(all.X.Max, chart.band_low),
                                             u32(palette().good, 0.1f));
    ImPlot::PopPlotClipRect();
  }
  if (is_missing(chart.shaded_until)) return;
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const ImVec2 low = ImPlot::PlotToPixels(limits.X.Min, limits.Y.Max);
  const ImVec2 high = ImPlot::PlotToPixels(std::min(chart.shaded_until, limits.X.Max), limits.Y.Min);
  if (high.x <= low.x) return;
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddRectFilled(low, high, u32(palette().quiet, 0.12f));
  if (high.x - low.x > px(60)) {
    ImPlot::GetPlotDrawList()->AddText(ImVec2(low.x + px(6), high.y - px(20)), u32(palette().quiet), "warm-up");
  }
  ImPlot::PopPlotClipRect();
}

void draw_floor(const Chart& chart) {
  if (is_missing(chart.floor)) return;
  ImPlotSpec spec;
  spec.LineColor = palette().warning;
  spec.Flags = static_cast<int>(ImPlotItemFlags_NoLegend) | static_cast<int>(ImPlotInfLinesFlags_Horizontal);
  ImPlot::PlotInfLines("##floor", &chart.floor, 1, spec);
  const ImVec2 at = ImPlot::PlotToPixels(ImPlot::GetPlotLimits().X.Max, chart.floor);
  ImGui::PushFont(fonts().regular, small_size);
  const ImVec2 size = ImGui::CalcTextSize(chart.floor_label.c_str());
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddText(ImVec2(at.x - size.x - px(6), at.y - size.y - px(2)), u32(palette().warning),
                                     chart.floor_label.c_str());
  ImPlot::PopPlotClipRect();
  ImGui::PopFont();
}

// As the legend names it: cut, so that long names leave the plot to the curves. What is behind ## tells equal ones
// apart.
std::string legend_label(const Curve& curve, float plot_width) {
  const std::string name = curve.label.substr(0, curve.label.find("##"));
  const std::string cut = cut_to(name, std::max(px(60), plot_width * 0.4f), Cut::middle);
  return cut == name ? curve.label : cut + "##" + curve.label;
}

// Where the legend would hide more than half of the plot there is none: the read-out under the mouse names the curves.
bool has_room_for_legend(const Chart& chart, float height) {
  const auto rows = std::count_if(chart.curves.begin(), chart.curves.end(), [](const Curve& c) { return c.in_legend; });
  return chart.legend && px(14) + px(17) * static_cast<float>(rows) < 0.6f * (height - px(40));
}

// The legend's order is that of first mention, which must not be the order in which curves cover each other.
void list_in_legend(const Chart& chart, float plot_width) {
  std::vector<const Curve*> curves;
  for (const Curve& curve : chart.curves) {
    if (curve.in_legend) curves.push_back(&curve);
  }
  std::stable_sort(curves.begin(), curves.end(), [](const Curve* a, const Curve* b) { return a->order < b->order; });
  for (const Curve* curve : curves) {
    ImPlotSpec spec;
    spec.LineColor = faded(curve->colour, 1 / std::max(curve->colour.w, 0.1f));
    ImPlot::PlotDummy(legend_label(*curve, plot_width).c_str(), spec);
  }
}

bool line_styles_on = false;

// In pixels, on and off, before scaling. The first is solid.
constexpr std::array<std::array<float, 4>, 5> dashes{
    {{0, 0, 0, 0}, {9, 4, 9, 4}, {2, 3, 2, 3}, {10, 3, 2, 3}, {5, 3, 5, 3}}};

void draw_dashed(const Polyline& line, const ImVec4& colour, float weight, int pattern) {
  const auto& dash = dashes[static_cast<std::size_t>(pattern) % dashes.size()];
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  const ImU32 ink = u32(colour);
  std::size_t part = 0;
  float left = px(dash[0]);
  ImPlot::PushPlotClipRect();
  for (std::size_t i = 1; i < line.x.size(); ++i) {
    ImVec2 from = ImPlot::PlotToPixels(line.x[i - 1], line.y[i - 1]);
    const ImVec2 to = ImPlot::PlotToPixels(line.x[i], line.y[i]);
    float length = std::hypot(to.x - from.x, to.y - from.y);
    if (!(length < 1e6f)) continue;
    while (length > 0) {
      const float piece = std::min(left, length);
      const ImVec2 end(from.x + (to.x - from.x) * piece / length, from.y + (to.y - from.y) * piece / length);
      if (part % 2 == 0) draw->AddLine(from, end, ink, weight);
      from = end;
      length -= piece;
      left -= piece;
      if (left > 0) break;
      part = (part + 1) % dash.size();
      left = px(dash[part]);
    }
  }
  ImPlot::PopPlotClipRect();
}

void draw_line(const Curve& curve, const Polyline& line, const ImVec4& colour, float weight, bool steps_up,
               float plot_width) {
  const std::string label = curve.in_legend ? legend_label(curve, plot_width) : curve.label;
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.LineWeight = px(weight);
  if (!curve.in_legend) spec.Flags = ImPlotItemFlags_NoLegend;
  const auto count = static_cast<int>(line.x.size());
  if (curve.points || count == 1) {
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = px(3.5f);
    spec.MarkerFillColor = colour;
    ImPlot::PlotScatter(label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else if (steps_up) {
    ImPlot::PlotStairs(label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else if (line_styles_on && curve.dash % static_cast<int>(dashes.size()) != 0) {
    draw_dashed(line, colour, px(weight), curve.dash);
  } else {
    ImPlot::PlotLine(label.c_str(), line.x.data(), line.y.data(), count, spec);
  }
}

// The lowest and the highest of each pixel column.
void draw_band(const Curve& curve, double left, double right, int columns) {
  if (curve.low.empty()) return;
  const Polyline low = decimate(curve.x, curve.low, left, right, columns);
  const Polyline high = decimate(curve.x, curve.high, left, right, columns);
  if (low.x.size() != high.x.size() || low.x.empty()) return;
  ImPlotSpec spec;
  spec.FillColor = faded(curve.colour, 0.2f);
  spec.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotShaded(("##band" + curve.label).c_str(), low.x.data(), low.y.data(), high.y.data(),
                     static_cast<int>(low.x.size()), spec);
}

void save(const Chart& chart, const std::string& ending) {
  if (ending == ".csv") {
    chart.commands->push_back(SaveText{chart.title, ending, chart_csv(chart)});
  } else {
    chart.commands->push_back(SaveFigure{figure_of(chart), ending});
  }
}

void draw_menu(const Chart& chart, bool& reset, bool& leaves_out) {
  if (!chart.commands) return;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##menu")) {
    if (ImGui::MenuItem("Show everything", "double click")) reset = true;
    if (ImGui::MenuItem("Outliers off-screen", "O", leaves_out)) leaves_out = !leaves_out;
    for (const auto& [words, ending] :
         {std::pair("Save as PNG", ".png"), std::pair("Save as SVG", ".svg"), std::pair("Save as PDF", ".pdf"),
          std::pair("Save the points as CSV", ".csv")}) {
      if (ImGui::MenuItem(words, ending == std::string(".png") ? "Ctrl+E" : nullptr)) save(chart, ending);
    }
    if (ImGui::MenuItem("Copy the points as CSV"))
      chart.commands->push_back(CopyText{chart_csv(chart), "Every point of " + chart.title});
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void use_line_styles(bool on) {
  line_styles_on = on;
}

void SharedX::begin_frame() {
  if (!fresh) hovered = missing;
  fresh = false;
}

std::string chart_csv(const Chart& chart) {
  std::string text = "curve," + chart.x_label + "," +
                     (chart.unit.empty() ? chart.title : chart.title + " (" + chart.unit + ")") + "\n";
  std::array<char, 64> number{};
  for (const Curve& curve : chart.curves) {
    std::string label = curve.label.substr(0, curve.label.find("##"));
    for (std::size_t quote = label.find('"'); quote != std::string::npos; quote = label.find('"', quote + 2))
      label.insert(quote, 1, '"');
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (is_missing(curve.y[i])) continue;
      std::snprintf(number.data(), number.size(), ",%.17g,%.17g\n", curve.x[i], curve.y[i]);
      text += '"' + label + '"' + number.data();
    }
  }
  return text;
}

void draw_chart(const Chart& chart) {
  ImGui::PushID(chart.id);
  // What the user has taken of the axes, from frame to frame.
  ImGuiStorage* const storage = ImGui::GetStateStorage();
  const ImGuiID y_taken_id = ImGui::GetID("y taken");
  const ImGuiID on_y_id = ImGui::GetID("on y");
  bool y_taken = storage->GetBool(y_taken_id, false);
  const ImGuiID leaves_out_id = ImGui::GetID("leaves out");
  bool leaves_out = storage->GetBool(leaves_out_id, false);
  SharedX own;
  SharedX& x_range_now = chart.shared ? *chart.shared : own;
  const ImGuiID low_id = ImGui::GetID("low");
  const ImGuiID high_id = ImGui::GetID("high");
  if (!chart.shared) {
    const float low = storage->GetFloat(low_id, 0);
    const float high = storage->GetFloat(high_id, 0);
    if (low != high) own.low = static_cast<double>(low), own.high = static_cast<double>(high);
  }
  text_strong(chart.title);
  ImGui::SameLine();
  const ImVec2 caption_at(ImGui::GetCursorPosX(), ImGui::GetCursorPosY() + px(2));
  ImGui::NewLine();

  const bool has_points = std::any_of(chart.curves.begin(), chart.curves.end(), [](const Curve& curve) {
    if (curve.levels) return curve.levels->points() + curve.levels->not_finite() > 0;
    return std::any_of(curve.y.begin(), curve.y.end(), [](double y) { return !is_missing(y); });
  });
  if (!has_points) {
    empty_state("Nothing recorded.", "");
    ImGui::SetCursorPos(caption_at);
    text_quiet(chart.note);
    ImGui::PopID();
    return;
  }
  static std::vector<Polyline> kept;  // from frame to frame, so that a thousand curves need no new memory
  kept.resize(std::max(kept.size(), chart.curves.size()));
  const std::span lines(kept.data(), chart.curves.size());
  std::size_t off_screen = 0;
  bool reset = false;
  bool floor_is_below = false;
  ImVec2 size = chart.size;
  if (size.x <= 0) size.x = ImGui::GetContentRegionAvail().x;
  if (size.y <= 0) size.y = ImGui::GetContentRegionAvail().y;
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot("##plot", size,
                        ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect |
                            (has_room_for_legend(chart, size.y) ? 0 : ImPlotFlags_NoLegend))) {
    // In the plot the wheel is x's alone, and y follows; over its own axis y can be taken.
    const bool y_free = y_taken || storage->GetBool(on_y_id, false);
    ImPlot::SetupAxes(chart.x_label.c_str(), nullptr,
                      ImPlotAxisFlags_NoHighlight | (chart.x_labelled ? 0 : ImPlotAxisFlags_NoLabel),
                      ImPlotAxisFlags_NoHighlight | (y_free ? 0 : ImPlotAxisFlags_Lock));
    ImPlot::SetupAxisFormat(ImAxis_X1, axis_number);
    ImPlot::SetupAxisFormat(ImAxis_Y1, axis_number);
    if (chart.log_x) ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    if (chart.log_y) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    const std::size_t share = chart.most_points / (2 * std::max<std::size_t>(1, chart.curves.size()));
    const int columns = std::max(8, static_cast<int>(std::min<std::size_t>(share, static_cast<std::size_t>(size.x))));
    const Range all = x_range(chart);
    const Range sight = x_range_now.zoomed() ? Range{x_range_now.low, x_range_now.high} : all;
    Range moved = sight;
    if (chart.log_x) set_up_log_ticks(ImAxis_X1, sight);
    if (!chart.log_x && chart.x_label == "step" && sight.high - sight.low < 8) set_up_whole_ticks(ImAxis_X1, sight);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Curve& curve = chart.curves[i];
      if (curve.levels) {
        curve.levels->show(curve.x, curve.y, sight.low, sight.high, columns, lines[i]);
      } else {
        lines[i] = decimate(curve.x, curve.y, sight.low, sight.high, columns);
      }
    }
    ImPlot::SetupAxisLinks(ImAxis_X1, &moved.low, &moved.high);  // limits that are always set could not be moved
    ImPlotLocation corner = ImPlotLocation_NorthEast;
    if (!y_free) {
      const Range y = y_range(chart, lines, sight.low, sight.high, leaves_out);
      if (chart.log_y) {
        set_up_log_ticks(ImAxis_Y1, y);
      } else {
        set_up_ticks(ImAxis_Y1, y, static_cast<int>((size.y - px(40)) / px(25)));
      }
      if (chart.legend) corner = emptiest_corner(lines, sight, y);
      ImPlot::SetupAxisLimits(ImAxis_Y1, y.low, y.high, ImPlotCond_Always);
    }
    ImPlot::SetupLegend(corner, ImPlotLegendFlags_NoButtons);
    ImPlot::SetupFinish();
    const ImPlotRect limits = ImPlot::GetPlotLimits();
    draw_shade(chart);
    list_in_legend(chart, size.x);
    if (!is_missing(chart.zero_line)) {
      ImPlotSpec spec;
      spec.LineColor = faded(palette().quiet, 0.8f);
      spec.Flags = static_cast<int>(ImPlotItemFlags_NoLegend) | static_cast<int>(ImPlotInfLinesFlags_Horizontal);
      ImPlot::PlotInfLines("##zero", &chart.zero_line, 1, spec);
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Curve& curve = chart.curves[i];
      off_screen += lines[i].off_range;
      for (std::size_t k = 0; k < lines[i].y.size(); ++k) {
        const bool inside_x = lines[i].x[k] >= limits.X.Min && lines[i].x[k] <= limits.X.Max;
        if (inside_x && (lines[i].y[k] < limits.Y.Min || lines[i].y[k] > limits.Y.Max)) ++off_screen;
      }
      if (lines[i].x.empty()) continue;
      draw_band(curve, sight.low, sight.high, columns);
      if (curve.smoothed.empty()) {
        draw_line(curve, lines[i], curve.colour, curve.weight, chart.steps_up, size.x);
      } else {
        draw_line(curve, lines[i], faded(curve.colour, 0.28f), 1, chart.steps_up, size.x);
        draw_line(curve, decimate(curve.x, curve.smoothed, sight.low, sight.high, columns), curve.colour, curve.weight,
                  chart.steps_up, size.x);
      }
    }
    floor_is_below = chart.floor < limits.Y.Min;
    draw_floor(chart);
    draw_marks(chart);
    const ImGuiIO& io = ImGui::GetIO();
    const bool on_plot = ImPlot::IsPlotHovered();
    const bool on_x = ImPlot::IsAxisHovered(ImAxis_X1);
    const bool on_y = ImPlot::IsAxisHovered(ImAxis_Y1);
    storage->SetBool(on_y_id, on_y);
    const bool moves = io.MouseWheel != 0 || ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2);
    if (on_y && moves) y_taken = true;
    if (on_plot) {
      x_range_now.hovered = nearest_x(chart, ImPlot::GetPlotMousePos().x);
      x_range_now.fresh = true;
      if (!io.WantTextInput && ImGui::IsKeyPressed(ImGuiKey_O, false) && !io.KeyCtrl) leaves_out = !leaves_out;
      if (!io.WantTextInput && chart.shared) {
        if (ImGui::IsKeyPressed(ImGuiKey_A, false) && !io.KeyCtrl) x_range_now.a = x_range_now.hovered;
        if (ImGui::IsKeyPressed(ImGuiKey_B, false) && !io.KeyCtrl) x_range_now.b = x_range_now.hovered;
      }
    }
    draw_cursors(chart, x_range_now.hovered);
    if (on_plot && !ImGui::IsPopupOpen("##menu")) read_out(chart, x_range_now.hovered);
    if ((on_plot || on_x || on_y) && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) reset = true;
    if (on_plot && ImGui::IsMouseReleased(ImGuiMouseButton_Right) && !ImGui::IsMouseDragging(ImGuiMouseButton_Right))
      ImGui::OpenPopup("##menu");
    draw_menu(chart, reset, leaves_out);
    if (on_plot && chart.commands && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_E)) save(chart, ".png");
    const ImVec2 low = ImPlot::GetPlotPos();
    const ImVec2 plot = ImPlot::GetPlotSize();
    ui_test_anchors::note(std::string("chart.") + chart.id, low.x, low.y, low.x + plot.x, low.y + plot.y);
    ImPlot::EndPlot();  // here the linked range takes what the mouse did
    if ((on_plot || on_x) && moves && (moved.low != sight.low || moved.high != sight.high))
      x_range_now.low = moved.low, x_range_now.high = moved.high;
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SetCursorPos(caption_at);
  text_cut((chart.note.empty() ? "" : chart.note + "  -  ") + caption(lines, off_screen) +
               (chart.smoothing.empty() ? "" : ", " + chart.smoothing) +
               (floor_is_below ? ", " + chart.floor_label + " " + loss_text(chart.floor) + " is below" : ""),
           ImGui::GetContentRegionAvail().x - chart.title_room, palette().quiet, fonts().regular, small_size);
  mark(std::string("chart.") + chart.id + ".off_screen." + std::to_string(off_screen));
  if (reset) {
    y_taken = false;
    x_range_now.low = x_range_now.high = missing;
  }
  storage->SetBool(y_taken_id, y_taken);
  storage->SetBool(leaves_out_id, leaves_out && !reset);
  if (!chart.shared) {
    storage->SetFloat(low_id, x_range_now.zoomed() ? static_cast<float>(x_range_now.low) : 0);
    storage->SetFloat(high_id, x_range_now.zoomed() ? static_cast<float>(x_range_now.high) : 0);
  }
  ImGui::PopID();
}

}  // namespace stepladder
