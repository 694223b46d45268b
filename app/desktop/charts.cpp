#include "app/desktop/charts.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/decimate.h"
#include "app/desktop/theme.h"
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

Range y_range(const Chart& chart, const std::vector<Polyline>& lines) {
  if (chart.steps_up) return {0, 1.03};
  Range range;
  if (chart.from_zero) {
    std::vector<double> values;
    for (const Polyline& line : lines) values.insert(values.end(), line.y.begin(), line.y.end());
    if (values.empty()) return {0, 1};
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * 0.98);
    std::nth_element(values.begin(), at, values.end());
    return {0, *at > 0 ? *at * 1.2 : 1};
  }
  for (const Polyline& line : lines) {
    for (const double value : line.y) range.include(value);
  }
  if (range.known() && !is_missing(chart.floor)) range.include(chart.floor);
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
void set_up_log_ticks(const Range& range) {
  std::vector<double> ticks;
  for (double decade = std::pow(10, std::floor(std::log10(range.low))); decade <= range.high; decade *= 10) {
    for (const double value : {decade, 2 * decade, 5 * decade}) {
      if (value >= range.low && value <= range.high) ticks.push_back(value);
    }
  }
  if (ticks.size() < 2 || ticks.size() > 12) return;
  ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
}

// What the line under a chart's title says: nothing is off-screen or not a number without a word.
std::string caption(const std::vector<Polyline>& lines, std::size_t off_screen) {
  std::size_t points = 0;
  std::size_t drawn = 0;
  std::size_t not_finite = 0;
  for (const Polyline& line : lines) {
    points += line.points;
    drawn += line.x.size();
    not_finite += line.not_finite;
  }
  if (points + not_finite == 0) return "no steps yet";
  std::string text = grouped(static_cast<std::int64_t>(points)) + " points, " +
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

// Every curve's value at the step under the mouse.
void read_out(const Chart& chart) {
  const double at = ImPlot::GetPlotMousePos().x;
  const double x_marked = [&] {
    for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend(); ++curve) {
      if (!curve->x.empty()) return curve->x[nearest_index(curve->x, at)];
    }
    return at;
  }();
  ImPlotSpec spec;
  spec.LineColor = faded(palette().quiet, 0.6f);
  spec.Flags = ImPlotItemFlags_NoLegend | ImPlotItemFlags_NoFit;
  ImPlot::PlotInfLines("##cursor", &x_marked, 1, spec);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(12), px(10)));
  if (ImGui::BeginTooltip()) {
    text_quiet(chart.x_label + " " + (chart.x_label == "step" ? grouped(std::llround(x_marked)) : compact(x_marked)));
    int rows = 0;
    for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend() && rows < 14; ++curve) {
      if (curve->x.empty() || curve->label.empty() || at > curve->x.back() + 1) continue;
      const std::size_t i = nearest_index(curve->x, at);
      if (is_missing(curve->y[i])) continue;
      ++rows;
      colour_square(curve->colour);
      ImGui::SameLine();
      ImGui::TextUnformatted((curve->label + "  " +
                              (chart.unit.empty() ? loss_text(curve->y[i]) : compact(curve->y[i]) + " " + chart.unit))
                                 .c_str());
    }
    ImGui::EndTooltip();
  }
  ImGui::PopStyleVar();
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

// The legend's order is that of first mention, which must not be the order in which curves cover each other.
void list_in_legend(const Chart& chart) {
  std::vector<const Curve*> curves;
  for (const Curve& curve : chart.curves) {
    if (curve.in_legend) curves.push_back(&curve);
  }
  std::stable_sort(curves.begin(), curves.end(), [](const Curve* a, const Curve* b) { return a->order < b->order; });
  for (const Curve* curve : curves) {
    ImPlotSpec spec;
    spec.LineColor = faded(curve->colour, 1 / std::max(curve->colour.w, 0.1f));
    ImPlot::PlotDummy(curve->label.c_str(), spec);
  }
}

void draw_curve(const Curve& curve, const Polyline& line, bool steps_up) {
  ImPlotSpec spec;
  spec.LineColor = curve.colour;
  spec.LineWeight = px(curve.weight);
  if (!curve.in_legend) spec.Flags = ImPlotItemFlags_NoLegend;
  const auto count = static_cast<int>(line.x.size());
  if (curve.points || count == 1) {
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = px(3.5f);
    spec.MarkerFillColor = curve.colour;
    ImPlot::PlotScatter(curve.label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else if (steps_up) {
    ImPlot::PlotStairs(curve.label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else {
    ImPlot::PlotLine(curve.label.c_str(), line.x.data(), line.y.data(), count, spec);
  }
}

}  // namespace

void draw_chart(const Chart& chart) {
  ImGui::PushID(chart.id);
  // Whether the user has taken the axes.
  const ImGuiID taken_id = ImGui::GetID("taken");
  ImGuiStorage* const storage = ImGui::GetStateStorage();
  bool taken = storage->GetBool(taken_id, false);
  text_strong(chart.title);
  ImGui::SameLine();
  const ImVec2 caption_at(ImGui::GetCursorPosX(), ImGui::GetCursorPosY() + px(2));
  ImGui::NewLine();

  std::vector<Polyline> lines(chart.curves.size());
  std::size_t off_screen = 0;
  ImVec2 size = chart.size;
  if (size.x <= 0) size.x = ImGui::GetContentRegionAvail().x;
  if (size.y <= 0) size.y = ImGui::GetContentRegionAvail().y;
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot("##plot", size,
                        ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus |
                            (chart.legend ? 0 : ImPlotFlags_NoLegend))) {
    ImPlot::SetupAxes(chart.x_label.c_str(), nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
    ImPlot::SetupAxisFormat(ImAxis_X1, axis_number);
    ImPlot::SetupAxisFormat(ImAxis_Y1, axis_number);
    if (chart.log_x) ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupLegend(ImPlotLocation_NorthEast, ImPlotLegendFlags_NoButtons);
    const int columns = std::max(1, static_cast<int>(size.x));
    const Range all = x_range(chart);
    if (chart.log_x) set_up_log_ticks(all);
    if (taken) {
      const ImPlotRect limits = ImPlot::GetPlotLimits();  // ends the set-up
      for (std::size_t i = 0; i < lines.size(); ++i) {
        lines[i] = decimate(chart.curves[i].x, chart.curves[i].y, limits.X.Min, limits.X.Max, columns);
      }
    } else {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        lines[i] = decimate(chart.curves[i].x, chart.curves[i].y, all.low, all.high, columns);
      }
      const Range y = y_range(chart, lines);
      ImPlot::SetupAxisLimits(ImAxis_X1, all.low, all.high, ImPlotCond_Always);
      ImPlot::SetupAxisLimits(ImAxis_Y1, y.low, y.high, ImPlotCond_Always);
      ImPlot::SetupFinish();
    }
    const ImPlotRect limits = ImPlot::GetPlotLimits();
    list_in_legend(chart);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      off_screen += lines[i].off_range;
      for (std::size_t k = 0; k < lines[i].y.size(); ++k) {
        const bool inside_x = lines[i].x[k] >= limits.X.Min && lines[i].x[k] <= limits.X.Max;
        if (inside_x && (lines[i].y[k] < limits.Y.Min || lines[i].y[k] > limits.Y.Max)) ++off_screen;
      }
      if (!lines[i].x.empty()) draw_curve(chart.curves[i], lines[i], chart.steps_up);
    }
    draw_floor(chart);
    if (ImPlot::IsPlotHovered()) {
      read_out(chart);
      if (ImGui::GetIO().MouseWheel != 0 || ImGui::IsMouseDragging(ImGuiMouseButton_Left)) taken = true;
      if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) taken = false;
    }
    ImPlot::EndPlot();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SetCursorPos(caption_at);
  text_cut((chart.note.empty() ? "" : chart.note + "  -  ") + caption(lines, off_screen),
           ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
  storage->SetBool(taken_id, taken);
  ImGui::PopID();
}

}  // namespace stepladder
