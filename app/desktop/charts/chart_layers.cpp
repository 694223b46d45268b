// Draws a chart from bottom to top: shades and bands, curves, marks, legend, cursors and read-outs. Called by
// charts.cpp between BeginPlot and EndPlot; everything that is drawn was derived before (chart_view.h).
#include "app/desktop/charts/chart_layers.h"

#include <implot.h>
#include <implot_internal.h>  // the legend's place, for tests

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "app/desktop/charts/chart_density.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"
#include "app/text/short_names.h"

namespace stepladder {
namespace {

bool line_styles_on = false;

std::size_t nearest_index(std::span<const double> x, double at) {
  const auto after = std::ranges::lower_bound(x, at);
  if (after == x.end()) return x.size() - 1;
  if (after == x.begin()) return 0;
  return static_cast<std::size_t>(after - x.begin()) - (at - *(after - 1) < *after - at ? 1 : 0);
}

std::string x_text(const Chart& chart, double x) {
  for (const ChartTick& tick : chart.x_ticks) {
    if (tick.x == x) return tick.words;
  }
  return in_print(chart.x_label == "step" ? grouped(std::llround(x)) : compact(x));
}

std::string y_text(const Chart& chart, double y) {
  return in_print(chart.unit.empty() ? loss_text(y) : compact(y)) + (chart.unit.empty() ? "" : " " + chart.unit);
}

void vertical_line(const char* id, double x, const ImVec4& colour) {
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.Flags = ImPlotItemFlags_NoLegend | ImPlotItemFlags_NoFit;
  ImPlot::PlotInfLines(id, &x, 1, spec);
}

// Whether a curve is visible as a line: not hidden, and not only a part of the picture of many.
bool is_line(const Chart& chart, const ChartView& view, const Curve& curve) {
  if (curve.hidden || curve.x.empty()) return false;
  return !view.density || !view.curves[static_cast<std::size_t>(&curve - chart.curves.data())].line.x.empty();
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

// Where the curves are the farthest above the floor's label, `width` wide, beside the legend's corner.
float place_of_label(const ChartView& view, double floor, float width) {
  const ImVec2 plot = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const bool has_legend_at_left = (view.legend_corner & ImPlotLocation_West) != 0;
  const float left = plot.x + px(6), right = plot.x + size.x - width - px(6);
  float best = right;
  double farthest = -1;
  for (const float at : {right, plot.x + (size.x - width) / 2, left}) {
    if (at == left && has_legend_at_left) continue;
    const double from = ImPlot::PixelsToPlot(at, plot.y).x, to = ImPlot::PixelsToPlot(at + width, plot.y).x;
    double lowest = INFINITY;
    for (const CurveView& curve : view.curves)
      for (std::size_t i = 0; i < curve.line.x.size(); ++i)
        if (curve.line.x[i] >= from && curve.line.x[i] <= to) lowest = std::min(lowest, curve.line.y[i] - floor);
    if (lowest <= farthest) continue;
    farthest = lowest;
    best = at;
  }
  return best;
}

void draw_floor(const Chart& chart, const ChartView& view) {
  if (is_missing(chart.floor)) return;
  ImPlotSpec spec;
  spec.LineColor = palette().warning;
  spec.Flags = static_cast<int>(ImPlotItemFlags_NoLegend) | static_cast<int>(ImPlotInfLinesFlags_Horizontal);
  ImPlot::PlotInfLines("##floor", &chart.floor, 1, spec);
  const float line = ImPlot::PlotToPixels(ImPlot::GetPlotLimits().X.Max, chart.floor).y;
  ImGui::PushFont(fonts().regular, small_size);
  const ImVec2 size = ImGui::CalcTextSize(chart.floor_label.c_str());
  ImPlot::PushPlotClipRect();
  // Below the line, since the curves come from above; in a low chart above it.
  const float bottom = ImPlot::GetPlotPos().y + ImPlot::GetPlotSize().y;
  const float top = line + px(2) + size.y < bottom ? line + px(2) : line - size.y - px(2);
  ImPlot::GetPlotDrawList()->AddText(ImVec2(place_of_label(view, chart.floor, size.x), top), u32(palette().warning),
                                     chart.floor_label.c_str());
  ImPlot::PopPlotClipRect();
  ImGui::PopFont();
}

std::vector<const Curve*> in_legend_order(const Chart& chart) {
  std::vector<const Curve*> curves;
  for (const Curve& curve : chart.curves) {
    if (curve.in_legend) curves.push_back(&curve);
  }
  std::ranges::stable_sort(curves, [](const Curve* a, const Curve* b) { return a->order < b->order; });
  return curves;
}

// The name without the part after ##, which makes equal ones distinct.
std::string name_of(const Curve& curve) {
  return curve.label.substr(0, curve.label.find("##"));
}

std::string legend_label(const Curve& curve, const LegendRoom& room) {
  const std::string name = name_of(curve);
  const std::string cut = cut_to(without_beginning(name, room.beginning), room.width, Cut::middle);
  return cut == name ? curve.label : cut + "##" + curve.label;
}

// Lists the curves first, since ImPlot orders the legend by first mention, and curves are drawn in another order.
void list_in_legend(const Chart& chart, const LegendRoom& room) {
  for (const Curve* curve : in_legend_order(chart)) {
    ImPlotSpec spec;
    spec.LineColor = faded(curve->colour, 1 / std::max(curve->colour.w, 0.1f));
    ImPlot::HideNextItem(curve->hidden, ImPlotCond_Always);
    spec.Flags = ImPlotItemFlags_NoFit;
    // An empty line: ImPlot gives a dummy a colour of its own, which a curve without points would keep.
    constexpr double nothing = 0;
    ImPlot::PlotLine(legend_label(*curve, room).c_str(), &nothing, &nothing, 0, spec);
  }
}

// In pixels, on and off, before scaling. The first is solid.
constexpr std::array<std::array<float, 4>, 6> dashes{
    {{0, 0, 0, 0}, {9, 4, 9, 4}, {2, 3, 2, 3}, {10, 3, 2, 3}, {5, 3, 5, 3}, {16, 5, 16, 5}}};

std::size_t dashes_of(const Curve& curve) {
  const int number = line_styles_on ? curve.number : rung_dash(curve.number);
  return static_cast<std::size_t>(std::max(0, number)) % dashes.size();
}

void draw_dashed(const Polyline& line, const ImVec4& colour, float weight, std::size_t pattern) {
  const auto& dash = dashes[pattern];
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
               const LegendRoom& room) {
  const std::string label = curve.in_legend ? legend_label(curve, room) : curve.label;
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.LineWeight = px(weight);
  if (!curve.in_legend) spec.Flags = ImPlotItemFlags_NoLegend;
  const auto count = static_cast<int>(line.x.size());
  if (curve.points || curve.has_dots || count == 1) {
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = px(count > 40 ? 2.2f : 3.5f);  // many large ones would hide the curve
    spec.MarkerFillColor = colour;
  }
  if (curve.points || count == 1) {
    ImPlot::PlotScatter(label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else if (steps_up) {
    ImPlot::PlotStairs(label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else if (dashes_of(curve) != 0) {
    draw_dashed(line, colour, px(weight), dashes_of(curve));
    if (curve.has_dots) ImPlot::PlotScatter(label.c_str(), line.x.data(), line.y.data(), count, spec);
  } else {
    ImPlot::PlotLine(label.c_str(), line.x.data(), line.y.data(), count, spec);
  }
}

// Shades between the lowest and the highest value of each pixel column.
void draw_band(const Curve& curve, const CurveView& view) {
  if (view.low.x.size() != view.high.x.size() || view.low.x.empty()) return;
  ImPlotSpec spec;
  spec.FillColor = faded(curve.colour, 0.28f);
  spec.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotShaded(("##band" + curve.label).c_str(), view.low.x.data(), view.low.y.data(), view.high.y.data(),
                     static_cast<int>(view.low.x.size()), spec);
  ImPlot::PushPlotClipRect();
  for (const std::size_t i : view.spikes)
    ImPlot::GetPlotDrawList()->AddLine(ImPlot::PlotToPixels(view.low.x[i], view.low.y[i]),
                                       ImPlot::PlotToPixels(view.high.x[i], view.high.y[i]), u32(curve.colour, 0.8f),
                                       px(1));
  ImPlot::PopPlotClipRect();
}

void draw_zero_line(const Chart& chart) {
  if (is_missing(chart.zero_line)) return;
  ImPlotSpec spec;
  spec.LineColor = faded(palette().quiet, 0.8f);
  spec.Flags = static_cast<int>(ImPlotItemFlags_NoLegend) | static_cast<int>(ImPlotInfLinesFlags_Horizontal);
  ImPlot::PlotInfLines("##zero", &chart.zero_line, 1, spec);
}

void draw_curve(const Curve& curve, const CurveView& view, bool steps_up, const LegendRoom& room) {
  if (view.line.x.empty() || curve.hidden) return;
  draw_band(curve, view);
  if (curve.smoothed.empty()) {
    draw_line(curve, view.line, curve.colour, curve.weight, steps_up, room);
  } else {
    draw_line(curve, view.line, faded(curve.colour, 0.28f), 1, steps_up, room);
    draw_line(curve, view.smoothed, curve.colour, curve.weight, steps_up, room);
  }
}

// The few lines above a picture of many: each on a broader one in the card's colour, so that it stays legible there;
// the one under the mouse on top.
void draw_above_density(const Chart& chart, const ChartView& view, const LegendRoom& room) {
  const auto draw = [&](std::size_t i) {
    Curve curve = chart.curves[i];
    curve.weight = std::max(curve.weight, 1.8f);
    Curve ground = curve;
    ground.label = "##ground" + curve.label;
    ground.in_legend = false;
    ground.colour = palette().card;
    ground.weight += 2;
    const CurveView& line = view.curves[i];
    if (line.line.x.empty()) return;
    draw_line(ground, line.smoothed.x.empty() ? line.line : line.smoothed, ground.colour, ground.weight, false, room);
    draw_curve(curve, line, false, room);
  };
  const auto hovered = view.density->hovered();
  for (std::size_t i = 0; i < view.curves.size(); ++i)
    if (i != hovered) draw(i);
  if (hovered && *hovered < view.curves.size()) draw(*hovered);
}

// Whether most of a curve is above or below the plot: what is left of it at the edge would say nothing.
bool is_mostly_outside(const Polyline& line) {
  const ImPlotRange y = ImPlot::GetPlotLimits().Y;
  return std::ranges::count_if(line.y, [&](double value) { return value > y.Max || value < y.Min; }) * 2 >
         std::ssize(line.y);
}

}  // namespace

void use_line_styles(bool on) {
  line_styles_on = on;
}

LegendRoom legend_room(const Chart& chart, float plot_width) {
  LegendRoom room{.width = std::max(px(60), plot_width * 0.4f)};
  std::vector<std::string> names;
  for (const Curve* curve : in_legend_order(chart)) names.push_back(name_of(*curve));
  const bool all_fit =
      std::ranges::all_of(names, [&](const std::string& name) { return cut_to(name, room.width) == name; });
  if (!all_fit && names.size() > 1) room.beginning = common_beginning(names, names.size());
  return room;
}

void draw_layers(const Chart& chart, const ChartView& view, const LegendRoom& room) {
  draw_shade(chart);
  list_in_legend(chart, room);
  draw_zero_line(chart);
  if (view.density) {
    view.density->draw(chart);
    draw_above_density(chart, view, room);
  } else {
    for (std::size_t i = 0; i < view.curves.size(); ++i)
      if (!chart.curves[i].is_context || !is_mostly_outside(view.curves[i].line))
        draw_curve(chart.curves[i], view.curves[i], chart.steps_up, room);
  }
  draw_floor(chart, view);
  draw_marks(chart);
}

bool has_room_for_legend(const Chart& chart, float height) {
  const auto rows = std::ranges::count_if(chart.curves, &Curve::in_legend);
  constexpr float share = 0.5f;  // of the plot's height: more would hide curves
  return chart.legend && px(14) + px(17) * static_cast<float>(rows) < share * (height - px(40));
}

double nearest_x(const Chart& chart, double at) {
  if (chart.steps_up) return at;  // an ECDF has a value everywhere
  for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend(); ++curve) {
    if (!curve->x.empty() && !curve->hidden) return curve->x[nearest_index(curve->x, at)];
  }
  return at;
}

namespace {

struct ReadOutRow {
  ImVec4 colour;
  std::string text;
  float off = 0;  // pixels between its value and the mouse
};

float off_mouse(double y) {
  return std::fabs(ImPlot::PlotToPixels(0, y).y - ImGui::GetMousePos().y);
}

struct ReadOutRows {
  std::vector<ReadOutRow> rows;
  std::size_t left_out = 0;  // curves
};

// The values at x, the curve on top first; of more than the plot has room for those nearest to the mouse, since a
// higher box would hide the curves of the charts around it.
ReadOutRows read_out_rows(const Chart& chart, const ChartView& view, double at, float row_height) {
  constexpr std::size_t most = 14;
  std::vector<ReadOutRow> rows;
  for (auto curve = chart.curves.rbegin(); curve != chart.curves.rend(); ++curve) {
    if (!is_line(chart, view, *curve) || curve->label.empty()) continue;
    std::string text = cut_to(curve->label.substr(0, curve->label.find("##")), px(240), Cut::middle) + "  ";
    if (chart.steps_up) {
      const auto above = std::ranges::upper_bound(curve->x, at) - curve->x.begin();
      const double y = above == 0 ? 0 : curve->y[static_cast<std::size_t>(above) - 1];
      rows.push_back({curve->colour, text + y_text(chart, y), off_mouse(y)});
      continue;
    }
    if (at > curve->x.back() + 1) continue;
    const std::size_t i = nearest_index(curve->x, at);
    if (is_missing(curve->y[i])) continue;
    text += y_text(chart, curve->y[i]);
    if (i < curve->low.size() && curve->low[i] < curve->high[i])
      text += "  (" + y_text(chart, curve->low[i]) + " \xE2\x80\x93 " + y_text(chart, curve->high[i]) + ")";
    if (i < curve->runs.size()) text += ", n = " + std::to_string(curve->runs[i]);
    if (i < curve->smoothed.size()) text += "  (smoothed " + y_text(chart, curve->smoothed[i]) + ")";
    rows.push_back({curve->colour, std::move(text), off_mouse(curve->y[i])});
  }
  const auto fitting = static_cast<std::size_t>(std::max(3.0f, (ImPlot::GetPlotSize().y - px(30)) / row_height - 1));
  if (rows.size() <= std::min(most, fitting)) return {std::move(rows)};
  const std::size_t kept = std::min(most, fitting) - 1, left_out = rows.size() - kept;
  std::ranges::stable_sort(rows, {}, &ReadOutRow::off);
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end());
  return {std::move(rows), left_out};
}

constexpr float flag_height = 20;  // of the cursors A and B, at the plot's upper edge

// How many points of the visible curves, or flags of cursors, a box covers.
std::size_t covered_by(const ImRect& box, const Chart& chart, const ChartView& view) {
  constexpr std::size_t looked_at = 400;  // of a curve
  std::size_t covered = 0;
  for (std::size_t k = 0; k < view.curves.size(); ++k) {
    if (chart.curves[k].hidden) continue;
    const Polyline& line = view.curves[k].line;
    for (std::size_t i = 0; i < line.x.size(); i += 1 + line.x.size() / looked_at)
      covered += box.Contains(ImPlot::PlotToPixels(line.x[i], line.y[i])) ? 1 : 0;
  }
  if (!chart.shared) return covered;
  for (const double x : {chart.shared->a, chart.shared->b}) {
    const float at = is_missing(x) ? -1 : ImPlot::PlotToPixels(x, 0).x;
    const float top = ImPlot::GetPlotPos().y;
    covered += box.Overlaps(ImRect(at, top, at + px(16), top + px(flag_height))) ? 1 : 0;
  }
  return covered;
}

// The next tooltip goes into a corner of the plot where it covers nothing. Without one it goes beside the plot, on the
// side nearer to the mouse that has the room, below the flags of a chart there; else inside, in the half without the
// mouse. A picture of many curves has no such corner.
void place_read_out(ImVec2 box, const Chart& chart, const ChartView& view) {
  const ImVec2 plot = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float gap = px(10), labels = px(52);  // of the y axis
  const float near = plot.x + gap, far = plot.x + size.x - gap - box.x;
  const float upper = plot.y + gap, lower = plot.y + size.y - gap - box.y;
  const ImVec2 mouse = ImGui::GetMousePos();
  const bool is_left_half = mouse.x < plot.x + size.x / 2;
  const float title = plot.y - px(34);  // a low chart's box may cover its own title
  if (!view.density && far >= near) {
    for (const float x : {is_left_half ? far : near, is_left_half ? near : far}) {
      if (mouse.x > x - px(16) && mouse.x < x + box.x + px(16)) continue;
      for (const float y : {upper, upper + px(flag_height), lower, title})
        if (y >= title && y + box.y < plot.y + size.y && covered_by({x, y, x + box.x, y + box.y}, chart, view) == 0)
          return ImGui::SetNextWindowPos(ImVec2(x, y));
    }
  }
  const float left = plot.x - labels, right = plot.x + size.x + gap, below_flags = plot.y + px(flag_height + 2);
  const ImGuiViewport& screen = *ImGui::GetMainViewport();
  const bool fits_left = left - box.x > screen.Pos.x, fits_right = right + box.x < screen.Pos.x + screen.Size.x;
  if (fits_right && (!fits_left || !is_left_half)) return ImGui::SetNextWindowPos(ImVec2(right, below_flags));
  if (fits_left) return ImGui::SetNextWindowPos(ImVec2(left - box.x, below_flags));
  ImGui::SetNextWindowPos(ImVec2(is_left_half ? far : near, below_flags));
}

}  // namespace

void read_out(const Chart& chart, const ChartView& view, double x_marked) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, px(3)));
  const float line = ImGui::GetTextLineHeight() + px(3);
  const auto [rows, left_out] = read_out_rows(chart, view, ImPlot::GetPlotMousePos().x, line);
  float width = 0;
  for (const ReadOutRow& row : rows) width = std::max(width, ImGui::CalcTextSize(row.text.c_str()).x);
  const std::size_t lines = rows.size() + (left_out > 0 ? 2 : 1);
  place_read_out(ImVec2(width + px(52), line * static_cast<float>(lines) + px(20)), chart, view);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(12), px(10)));
  if (ImGui::BeginTooltip()) {
    text_quiet(chart.x_label.substr(0, chart.x_label.find(", log scale")) + " " + x_text(chart, x_marked));
    for (const ReadOutRow& row : rows) {
      colour_square(row.colour);
      ImGui::SameLine();
      ImGui::TextUnformatted(row.text.c_str());
    }
    if (left_out > 0) {
      text_quiet(std::to_string(left_out) + " more");
      mark(std::string("chart.") + chart.id + ".read_out.more." + std::to_string(left_out));
    }
    const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
    const std::string name = std::string("chart.") + chart.id + ".read_out";
    ui_test_anchors::note(name, corner.x, corner.y, corner.x + size.x, corner.y + size.y);
    const std::size_t covered = covered_by({corner.x, corner.y, corner.x + size.x, corner.y + size.y}, chart, view);
    ui_test_anchors::note(name + ".covers." + std::to_string(covered), corner.x, corner.y, corner.x, corner.y);
    for (const ChartMark& mark : chart.marks) {
      if (std::fabs(ImPlot::PlotToPixels(mark.x, 0).x - ImGui::GetMousePos().x) > px(5)) continue;
      ImGui::PushTextWrapPos(px(420));
      text_toned(mark.words, Tone::warning);
      ImGui::PopTextWrapPos();
    }
    ImGui::EndTooltip();
  }
  ImGui::PopStyleVar(2);
}

namespace {

// Equal values of several curves share a row.
struct ValueRow {
  std::vector<ImU32> colours;
  std::string text;
};

// Beside the cursor, on the side where the legend isn't; if it is on both, below it.
ImVec2 place_of_values(ImVec2 size, float cursor) {
  const ImVec2 plot = ImPlot::GetPlotPos(), room = ImPlot::GetPlotSize();
  const ImPlotPlot& drawn = *ImPlot::GetCurrentContext()->CurrentPlot;
  const ImRect legend = (drawn.Flags & ImPlotFlags_NoLegend) != 0 ? ImRect() : drawn.Items.Legend.Rect;
  const float right = cursor + px(8), left = cursor - px(8) - size.x, top = plot.y + px(4);
  const bool fits_right = right + size.x < plot.x + room.x;
  const bool fits_left = left > plot.x;
  const auto is_free = [&](float x) { return !legend.Overlaps(ImRect(x, top, x + size.x, top + size.y)); };
  if (fits_right && is_free(right)) return ImVec2(right, top);
  if (fits_left && is_free(left)) return ImVec2(left, top);
  const float below = std::min(legend.Max.y + px(4), plot.y + room.y - size.y);
  return ImVec2(fits_right ? right : left, std::max(top, below));
}

}  // namespace

void draw_values(const Chart& chart, const ChartView& view, double x) {
  const float row = px(15), square = px(9);
  const auto most = static_cast<std::size_t>(std::clamp((ImPlot::GetPlotSize().y - px(12)) / row, 0.0f, 12.0f));
  std::vector<ValueRow> rows;
  std::size_t left_out = 0;
  ImPlot::PushPlotClipRect();
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  for (const Curve& curve : chart.curves) {
    if (!is_line(chart, view, curve) || x < curve.x.front() || x > curve.x.back()) continue;
    const std::size_t i = nearest_index(curve.x, x);
    const double y = curve.smoothed.empty() ? curve.y[i] : curve.smoothed[i];
    if (is_missing(y)) continue;
    if (std::isfinite(y)) draw->AddCircleFilled(ImPlot::PlotToPixels(x, y), px(3), u32(curve.colour));
    auto same = std::ranges::find(rows, y_text(chart, y), &ValueRow::text);
    if (same == rows.end() && rows.size() <= most) same = rows.insert(rows.end(), {.text = y_text(chart, y)});
    if (same == rows.end()) {
      ++left_out;
    } else {
      same->colours.push_back(u32(curve.colour));
    }
  }
  while (!rows.empty() && rows.size() + (left_out > 0 ? 1 : 0) > most) {
    left_out += rows.back().colours.size();
    rows.pop_back();
  }
  std::size_t named = 0, most_colours = 0;
  for (ValueRow& each : rows) {
    named += each.colours.size();
    each.colours.resize(std::min<std::size_t>(each.colours.size(), 8));
    most_colours = std::max(most_colours, each.colours.size());
  }
  if (left_out > 0 && !rows.empty()) rows.push_back({.text = std::to_string(left_out) + " more"});
  float width = 0;
  for (const ValueRow& each : rows) width = std::max(width, ImGui::CalcTextSize(each.text.c_str()).x);
  const float indent = px(10) + square * static_cast<float>(most_colours);
  const ImVec2 size(indent + width + px(7), row * static_cast<float>(rows.size()) + px(8));
  const ImVec2 corner = place_of_values(size, ImPlot::PlotToPixels(x, 0).x);
  if (!rows.empty())
    draw->AddRectFilled(corner, ImVec2(corner.x + size.x, corner.y + size.y), u32(palette().card, 0.88f), px(4));
  float top = corner.y + px(4);
  for (const ValueRow& each : rows) {
    float at = corner.x + px(6);
    for (const ImU32 colour : each.colours) {
      draw->AddRectFilled(ImVec2(at, top + px(4)), ImVec2(at + px(7), top + px(11)), colour, px(2));
      at += square;
    }
    draw->AddText(ImVec2(corner.x + indent, top), u32(palette().text), each.text.c_str());
    top += row;
  }
  ImPlot::PopPlotClipRect();
  if (rows.empty()) return;
  ui_test_anchors::note(std::string("chart.") + chart.id + ".values." + std::to_string(named), corner.x, corner.y,
                        corner.x + size.x, corner.y + size.y);
}

void use_legend(const Chart& chart, const LegendRoom& room) {
  if (!chart.legend_input) return;
  LegendInput& input = *chart.legend_input;
  const ImPlotPlot& plot = *ImPlot::GetCurrentContext()->CurrentPlot;
  input = {.has_room = (plot.Flags & ImPlotFlags_NoLegend) == 0};
  if (!input.has_room) return;
  const ImPlotLegend& legend = plot.Items.Legend;
  const ImPlotStyle& style = ImPlot::GetStyle();
  float top = legend.Rect.Min.y + style.LegendInnerPadding.y;
  for (const Curve* curve : in_legend_order(chart)) {
    const float bottom = top + ImGui::GetTextLineHeight();
    ui_test_anchors::note("chart." + std::string(chart.id) + ".legend." + std::to_string(curve->order),
                          legend.Rect.Min.x, top, legend.Rect.Max.x, bottom);
    top = bottom + style.LegendSpacing.y;
    if (!ImPlot::IsLegendEntryHovered(legend_label(*curve, room).c_str())) continue;
    input.hovered = curve->order;
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) input.right_clicked = curve->order;
    if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) continue;
    int& clicked = ImGui::GetIO().KeyAlt                                ? input.alt_clicked
                   : ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left) ? input.double_clicked
                                                                        : input.clicked;
    clicked = curve->order;
  }
}

void draw_target(const Chart& chart) {
  if (!chart.target || is_missing(chart.target->value)) return;
  TargetLine& target = *chart.target;
  bool held = false;
  ImPlot::DragLineY(0, &target.value, faded(palette().text, 0.75f), px(1.5f), ImPlotDragToolFlags_NoFit, nullptr,
                    nullptr, &held);
  target.is_taken = target.is_taken || held;
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  if (held) target.value = std::clamp(target.value, limits.Y.Min, limits.Y.Max);
  const std::string label = "target " + loss_text(target.value);
  const ImVec2 at = ImPlot::PlotToPixels(limits.X.Min, target.value);
  const ImVec2 size = ImGui::CalcTextSize(label.c_str());
  const ImVec2 low(at.x + px(6), at.y - size.y - px(2));
  ImPlot::PushPlotClipRect();
  ImDrawList* draw = ImPlot::GetPlotDrawList();  // on a ground of its own: curves may run there
  draw->AddRectFilled(ImVec2(low.x - px(3), low.y), ImVec2(low.x + size.x + px(3), low.y + size.y),
                      u32(palette().card, 0.85f), px(3));
  draw->AddText(low, u32(palette().text), label.c_str());
  ImPlot::PopPlotClipRect();
  const float right = ImPlot::GetPlotPos().x + ImPlot::GetPlotSize().x;
  ui_test_anchors::note("chart." + std::string(chart.id) + ".target", at.x, at.y - px(3), right, at.y + px(3));
}

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

}  // namespace stepladder
