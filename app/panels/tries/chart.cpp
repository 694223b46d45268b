// Draws the tries by hand with ImPlot, like Record's charts: few points, with marks and tooltips of their own. The
// range of y is that of what is kept and of most others; values outside it are marked at the edge, and counted.
#include "app/panels/tries/chart.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

struct Heights {
  double low = 0, high = 1;
  std::size_t outside = 0;
};

Heights heights_of(const TriesView& view) {
  std::vector<double> must, others;
  for (const TryFigures& each : view.figures) {
    if (!std::isfinite(each.value)) continue;
    const bool is_kept = each.verdict == "kept" || each.verdict == "first";
    (is_kept ? must : others).push_back(each.value);
    if (!is_kept) continue;
    for (const double end : {each.ci95.low, each.ci95.high})
      if (std::isfinite(end)) must.push_back(end);
    if (std::isfinite(view.half_band))
      must.insert(must.end(), {each.value - view.half_band, each.value + view.half_band});
  }
  std::ranges::sort(others);
  const std::size_t off = others.size() / 50;  // of either end
  for (std::size_t i = off; i + off < others.size(); ++i) must.push_back(others[i]);
  if (must.empty()) return {};
  const auto [low, high] = std::minmax_element(must.begin(), must.end());
  const double room = *high > *low ? 0.08 * (*high - *low) : std::abs(*high) * 1e-3 + 1e-6;
  Heights heights{*low - room, *high + room};
  for (const double value : others) heights.outside += value < heights.low || value > heights.high;
  return heights;
}

// What was kept last when this try was judged, or is kept now.
void draw_stairs(const TriesView& view, double end) {
  struct Stair {
    double from, to, value;
  };
  std::vector<Stair> stairs;
  for (std::size_t i = 0; i < view.figures.size(); ++i) {
    const TryFigures& each = view.figures[i];
    if ((each.verdict != "kept" && each.verdict != "first") || !std::isfinite(each.value)) continue;
    const auto at = static_cast<double>(view.shown.tries[i].number);
    if (!stairs.empty()) stairs.back().to = at;
    stairs.push_back({at, end, each.value});
  }
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  if (std::isfinite(view.half_band))
    for (const Stair& stair : stairs) {
      const ImVec2 a = ImPlot::PlotToPixels(stair.from, stair.value + view.half_band);
      const ImVec2 b = ImPlot::PlotToPixels(stair.to, stair.value - view.half_band);
      draw->AddRectFilled(a, b, u32(palette().accent, 0.11f));
    }
  std::vector<ImVec2> line;
  for (const Stair& stair : stairs) {
    line.push_back(ImPlot::PlotToPixels(stair.from, stair.value));
    line.push_back(ImPlot::PlotToPixels(stair.to, stair.value));
  }
  draw->AddPolyline(line.data(), static_cast<int>(line.size()), u32(palette().accent), 0, px(2));
}

void draw_interval(double x, const Interval& ci95) {
  if (!ci95.known()) return;
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  const ImVec2 low = ImPlot::PlotToPixels(x, ci95.low), high = ImPlot::PlotToPixels(x, ci95.high);
  const ImU32 colour = u32(palette().text, 0.85f);
  draw->AddLine(low, high, colour, px(1.5f));
  for (const ImVec2 end : {low, high})
    draw->AddLine(ImVec2(end.x - px(4), end.y), ImVec2(end.x + px(4), end.y), colour, px(1.5f));
}

void describe(const TriesView& view, std::size_t i) {
  const Try& it = view.shown.tries[i];
  const TryFigures& figures = view.figures[i];
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(440));
  text_strong((it.number == 0 ? "The unchanged state" : "Try " + std::to_string(it.number)) +
              (it.message.empty() ? "" : ": " + bounded(it.message, 300)));
  std::string words = try_verdict_word(figures.verdict) +
                      (is_missing(figures.value) ? "" : ", " + view.metric + " " + metric_text(figures.value));
  ImGui::TextUnformatted(words.c_str());
  if (!figures.change.empty()) text_quiet_wrapped(in_print(figures.change));
  text_quiet(plural(figures.runs, "run") + ", " + rough_duration_text(figures.wall_s));
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void draw_legend(const TriesView& view) {
  const std::array<const char*, 6> verdicts{"kept", "cannot-tell", "worse", "guard", "invalid", "failed"};
  for (const char* verdict : verdicts) {
    const auto is_it = [&](const TryFigures& each) { return each.verdict == verdict; };
    const auto count = std::ranges::count_if(view.figures, is_it);
    if (count == 0) continue;
    same_line(14);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_try_mark(ImGui::GetWindowDrawList(), ImVec2(at.x + px(5), at.y + ImGui::GetTextLineHeight() / 2), verdict,
                  px(4));
    ImGui::Dummy(ImVec2(px(11), 1));
    same_line(4);
    text_quiet(try_verdict_word(verdict) + " " + std::to_string(count));
  }
}

}  // namespace

void draw_try_mark(ImDrawList* draw, ImVec2 at, const std::string& verdict, float radius) {
  const float line = px(1.5f);
  const auto cross = [&](const ImVec4& colour) {
    draw->AddLine(ImVec2(at.x - radius, at.y - radius), ImVec2(at.x + radius, at.y + radius), u32(colour), line);
    draw->AddLine(ImVec2(at.x - radius, at.y + radius), ImVec2(at.x + radius, at.y - radius), u32(colour), line);
  };
  if (verdict == "kept" || verdict == "first") {
    draw->AddCircleFilled(at, radius * 1.2f, u32(palette().accent));
  } else if (verdict == "worse") {
    draw->AddTriangle(ImVec2(at.x - radius, at.y - radius), ImVec2(at.x + radius, at.y - radius),
                      ImVec2(at.x, at.y + radius), u32(palette().quiet), line);
  } else if (verdict == "guard") {
    draw->AddRect(ImVec2(at.x - radius, at.y - radius), ImVec2(at.x + radius, at.y + radius), u32(palette().warning), 0,
                  0, line);
  } else if (verdict == "invalid") {
    draw->AddQuad(ImVec2(at.x, at.y - radius * 1.3f), ImVec2(at.x + radius * 1.3f, at.y),
                  ImVec2(at.x, at.y + radius * 1.3f), ImVec2(at.x - radius * 1.3f, at.y), u32(palette().bad), line);
  } else if (verdict == "failed") {
    cross(palette().bad);
  } else {  // cannot-tell, running
    draw->AddCircle(at, radius * 0.9f, u32(verdict == "running" ? palette().accent : palette().quiet), 0, line);
  }
}

std::int64_t draw_tries(const TriesView& view, std::int64_t selected, ImVec2 size) {
  const Heights heights = heights_of(view);
  text_strong(view.metric.empty() ? "Metric by try" : view.metric + " by try");
  draw_legend(view);
  std::string note = view.lower_is_better ? "Lower is better" : "Higher is better";
  note += ". Stairs: what is kept, with 95 % intervals; band: 95 % of the runs without a clear change";
  if (heights.outside > 0)
    note += "; " + plural(static_cast<std::int64_t>(heights.outside), "value") + " beyond the edge";
  text_cut(note, size.x, palette().quiet, fonts().regular, small_size);
  size.y = ImGui::GetContentRegionAvail().y;
  constexpr ImPlotFlags flags =
      ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend;
  const double last = view.shown.tries.empty() ? 1 : static_cast<double>(view.shown.tries.back().number);
  const double end = std::max(last, 4.0) + std::max(0.5, 0.012 * last);
  std::int64_t hovered = -1;
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot("##tries", size, flags)) {
    ImPlot::SetupAxes("try", nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
    ImPlot::SetupAxisLimits(ImAxis_X1, -std::max(0.5, 0.012 * last), end, ImPlotCond_Always);
    ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
    if (end < 15) ImPlot::SetupAxisTicks(ImAxis_X1, 0, std::floor(end), static_cast<int>(end) + 1);
    ImPlot::SetupAxisLimits(ImAxis_Y1, heights.low, heights.high, ImPlotCond_Always);
    ImPlot::SetupFinish();
    ImPlot::PushPlotClipRect();
    ImDrawList* draw = ImPlot::GetPlotDrawList();
    draw_stairs(view, end);
    const float radius = px(view.figures.size() > 150 ? 2.8f : 4.2f);
    float best = px(14) * px(14);
    const ImVec2 mouse = ImGui::GetMousePos();
    const bool is_over = ImPlot::IsPlotHovered();
    std::size_t at_mouse = 0;
    const float top = ImPlot::GetPlotPos().y + radius * 2,
                bottom = ImPlot::GetPlotPos().y + ImPlot::GetPlotSize().y - radius * 2;
    for (std::size_t i = 0; i < view.figures.size(); ++i) {
      const TryFigures& each = view.figures[i];
      const auto x = static_cast<double>(view.shown.tries[i].number);
      draw_interval(x, each.ci95);
      // Without a value at the edge of the worse side.
      const double y = std::isfinite(each.value) ? each.value : view.lower_is_better ? heights.high : heights.low;
      ImVec2 place = ImPlot::PlotToPixels(x, y);
      place.y = std::clamp(place.y, top, bottom);
      draw_try_mark(draw, place, each.verdict, radius);
      if (view.shown.tries[i].number == selected) draw->AddCircle(place, radius + px(5), u32(palette().text), 0, px(2));
      const float far = (place.x - mouse.x) * (place.x - mouse.x) + (place.y - mouse.y) * (place.y - mouse.y);
      if (is_over && far < best) best = far, hovered = view.shown.tries[i].number, at_mouse = i;
    }
    ImPlot::PopPlotClipRect();
    if (hovered >= 0) describe(view, at_mouse);
    ImPlot::EndPlot();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return hovered;
}

}  // namespace stepladder
