// Draws Record's charts by hand with ImPlot: final losses, p as runs arrive, published records. These are few points
// with their own tooltips, so charts.h's decimation and zoom aren't used.
#include "app/panels/record/charts.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr ImPlotFlags plot_flags =
    ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend;

struct Range {
  double low = 0;
  double high = 1;
};

// All finite values, with room around them.
Range range_of(const std::vector<double>& values) {
  Range range{INFINITY, -INFINITY};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  if (range.low > range.high) return {};
  const double room = range.high > range.low ? 0.12 * (range.high - range.low) : std::abs(range.high) * 1e-3 + 1e-6;
  return {range.low - room, range.high + room};
}

std::string number_text(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void line_at(const char* id, double y, double from, double to, const ImVec4& colour) {
  const std::array<double, 2> x{from, to}, at{y, y};
  ImPlotSpec spec;
  spec.LineColor = colour;
  spec.LineWeight = px(1.5f);
  ImPlot::PlotLine(id, x.data(), at.data(), 2, spec);
}

// Beneath or above a line, at the right edge.
void label_at(double x, double y, const std::string& text, const ImVec4& colour) {
  const ImVec2 at = ImPlot::PlotToPixels(x, y);
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  ImPlot::PushPlotClipRect();
  ImPlot::GetPlotDrawList()->AddText(ImVec2(at.x - size.x - px(6), at.y + px(2)), u32(colour), text.c_str());
  ImPlot::PopPlotClipRect();
}

void title_line(const std::string& title, const std::string& note) {
  text_strong(title);
  text_cut(note, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
}

bool begin_plot(const char* id, ImVec2 size) {
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot(id, size, plot_flags)) return true;
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return false;
}

void end_plot() {
  ImPlot::EndPlot();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

// The axis of runs: 1, 2, ... at whole numbers.
void runs_axis(std::size_t runs) {
  ImPlot::SetupAxisLimits(ImAxis_X1, 0.5, static_cast<double>(std::max<std::size_t>(runs, 2)) + 0.5, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  if (runs > 12) return;
  std::vector<double> ticks;
  for (std::size_t i = 1; i <= std::max<std::size_t>(runs, 2); ++i) ticks.push_back(static_cast<double>(i));
  ImPlot::SetupAxisTicks(ImAxis_X1, ticks.data(), static_cast<int>(ticks.size()));
}

// The dot under the mouse, or -1.
int nearest_dot(const std::vector<double>& x, const std::vector<double>& y) {
  if (!ImPlot::IsPlotHovered()) return -1;
  const ImVec2 mouse = ImGui::GetMousePos();
  int nearest = -1;
  float best = px(12) * px(12);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(y[i])) continue;
    const ImVec2 at = ImPlot::PlotToPixels(x[i], y[i]);
    const float far = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
    if (far < best) best = far, nearest = static_cast<int>(i);
  }
  return nearest;
}

void draw_dots(const std::vector<double>& x, const std::vector<double>& y, const ImVec4& colour) {
  ImPlot::PushPlotClipRect();
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  const float radius = px(x.size() > 200 ? 2.0f : 4.0f);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(y[i])) draw->AddCircleFilled(ImPlot::PlotToPixels(x[i], y[i]), radius, u32(colour, 0.85f));
  ImPlot::PopPlotClipRect();
}

void describe(const RecordDot& dot, const std::string& metric) {
  ImGui::BeginTooltip();
  text_strong(dot.name);
  ImGui::TextUnformatted((metric + " " + number_text(dot.value, "%.5f") +
                          (is_missing(dot.time_s) ? "" : ", " + number_text(dot.time_s, "%.2f") + " s"))
                             .c_str());
  ImGui::EndTooltip();
}

}  // namespace

void draw_losses(const RecordView& view, ImVec2 size) {
  const std::string metric = view.rule ? view.rule->metric : "val_loss";
  const double target = view.rule ? view.rule->target : missing;
  const Interval& mean = view.claim.metric_ci95;
  std::vector<double> x, y;
  std::size_t not_finite = 0;
  for (const RecordDot& dot : view.dots) {
    x.push_back(static_cast<double>(x.size() + 1));
    y.push_back(dot.value);
    not_finite += !std::isfinite(dot.value);
  }
  std::string note = plural(std::ssize(view.dots), "run") + " in order of date; the band is the mean's 95 % interval";
  if (not_finite > 0) note += "; " + std::to_string(not_finite) + " not finite";
  title_line("Final " + metric, note);
  size.y -= ImGui::GetTextLineHeightWithSpacing() * 2 + px(4);
  std::vector<double> shown = y;
  for (const double value : {target, mean.low, mean.high})
    if (!is_missing(value)) shown.push_back(value);
  const Range range = range_of(shown);
  const double last = static_cast<double>(std::max<std::size_t>(x.size(), 2)) + 0.5;
  if (!begin_plot("##losses", size)) return;
  ImPlot::SetupAxes("run", nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  runs_axis(x.size());
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%.4f");
  ImPlot::SetupAxisLimits(ImAxis_Y1, range.low, range.high, ImPlotCond_Always);
  ImPlot::SetupFinish();
  if (mean.known()) {
    ImPlot::PushPlotClipRect();
    const ImVec2 low = ImPlot::PlotToPixels(0.5, mean.low), high = ImPlot::PlotToPixels(last, mean.high);
    ImPlot::GetPlotDrawList()->AddRectFilled(ImVec2(low.x, high.y), ImVec2(high.x, low.y),
                                             u32(palette().accent, 0.16f));
    ImPlot::PopPlotClipRect();
    line_at("##mean", view.claim.metric.mean, 0.5, last, faded(palette().accent, 0.8f));
  }
  if (!is_missing(target)) {
    line_at("##target", target, 0.5, last, palette().bad);
    label_at(last, target, "target " + number_text(target, "%.4g"), palette().bad);
  }
  draw_dots(x, y, palette().text);
  if (const int dot = nearest_dot(x, y); dot >= 0) describe(view.dots[static_cast<std::size_t>(dot)], metric);
  end_plot();
}

void draw_p(const RecordView& view, ImVec2 size) {
  const double alpha = view.rule ? view.rule->alpha : missing;
  std::vector<double> x, y, shown;
  for (std::size_t i = 0; i < view.dots.size(); ++i) {
    const double p = view.dots[i].p;
    if (is_missing(p)) continue;
    x.push_back(static_cast<double>(i + 1));
    y.push_back(std::max(p, 1e-300));
    shown.push_back(std::log10(y.back()));
  }
  const bool is_tested = view.rule && view.rule->test != RecordTest::none;
  title_line("p as runs arrive", !x.empty()  ? "of the first k runs; stopping at a low p passes more null results"
                                 : is_tested ? "It needs at least two runs with a spread"
                                             : "Without a rule that has a test there is none");
  size.y -= ImGui::GetTextLineHeightWithSpacing() * 2 + px(4);
  if (!is_missing(alpha)) shown.push_back(std::log10(alpha));
  const Range range = range_of(shown);
  const double last = static_cast<double>(std::max<std::size_t>(view.dots.size(), 2)) + 0.5;
  if (!begin_plot("##p", size)) return;
  ImPlot::SetupAxes("runs", nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  runs_axis(view.dots.size());
  ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%.1g");
  constexpr std::array ticks{1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.5, 1.0};
  ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()));
  ImPlot::SetupAxisLimits(ImAxis_Y1, std::pow(10, x.empty() ? -3 : range.low), x.empty() ? 1 : std::pow(10, range.high),
                          ImPlotCond_Always);
  ImPlot::SetupFinish();
  if (!is_missing(alpha)) {
    line_at("##alpha", alpha, 0.5, last, palette().bad);
    label_at(last, alpha, "level " + number_text(alpha, "%.3g"), palette().bad);
  }
  ImPlotSpec spec;
  spec.LineColor = palette().accent;
  spec.LineWeight = px(1.5f);
  if (x.size() > 1) ImPlot::PlotLine("##p", x.data(), y.data(), static_cast<int>(x.size()), spec);
  draw_dots(x, y, palette().accent);
  if (const int dot = nearest_dot(x, y); dot >= 0) {
    const auto i = static_cast<std::size_t>(dot);
    ImGui::SetTooltip("p = %.3g after %.0f runs", y[i], x[i]);
  }
  end_plot();
}

int draw_published(const PublishedRecords& published, int highlighted, ImVec2 size) {
  std::vector<double> x, y;
  for (const PublishedRecord& record : published.records) {
    x.push_back(static_cast<double>(record.day_s));
    y.push_back(record.minutes);
  }
  const double room = 0.03 * (x.back() - x.front()) + 86'400;
  int hovered = -1;
  if (!begin_plot("##published", size)) return hovered;
  ImPlot::GetStyle().UseLocalTime = false;
  ImPlot::SetupAxes(nullptr, "minutes", ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Time);
  ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  constexpr std::array ticks{0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0};
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%g");
  ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()));
  ImPlot::SetupAxisLimits(ImAxis_X1, x.front() - room, x.back() + room, ImPlotCond_Once);
  ImPlot::SetupAxisLimits(ImAxis_Y1, *std::ranges::min_element(y) / 1.3, *std::ranges::max_element(y) * 1.3,
                          ImPlotCond_Once);
  ImPlot::SetupFinish();
  ImPlotSpec spec;
  spec.LineColor = palette().accent;
  spec.LineWeight = px(1.5f);
  ImPlot::PlotStairs("##minutes", x.data(), y.data(), static_cast<int>(x.size()), spec);
  draw_dots(x, y, palette().accent);
  hovered = nearest_dot(x, y);
  if (highlighted >= 0 && highlighted < static_cast<int>(x.size())) {
    const auto i = static_cast<std::size_t>(highlighted);
    ImPlot::GetPlotDrawList()->AddCircle(ImPlot::PlotToPixels(x[i], y[i]), px(7), u32(palette().text), 0, px(2));
  }
  if (hovered >= 0) {
    const PublishedRecord& record = published.records[static_cast<std::size_t>(hovered)];
    ImGui::SetTooltip("%d: %g minutes, %s\n%s", record.number, record.minutes, record.date.c_str(),
                      record.what.empty() ? "change not known" : record.what.c_str());
  }
  end_plot();
  return hovered;
}

}  // namespace stepladder
