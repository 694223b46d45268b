// A dot on the diagonal was right. A bound is a hollow dot, right anywhere below the diagonal. The band is where 95 %
// of the estimates lie by their errors so far, which is also how wide the next one is said to be.
#include "app/panels/past_predictions.h"

#include <fmt/format.h>
#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr std::array gain_ticks{0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0};

// Of throughput, as everywhere.
double predicted_gain(const PastPrediction& each) {
  return 1 / each.predicted;
}
double measured_gain(const PastPrediction& each) {
  return 1 / each.measured;
}

std::string sentence_of(const std::vector<PastPrediction>& past) {
  std::size_t bounds = 0, held = 0, here = 0;
  std::vector<double> off;
  for (const PastPrediction& each : past) {
    here += each.is_from_here;
    if (each.at_most) {
      ++bounds;
      held += !each.breaks();
    } else {
      off.push_back(std::abs(each.predicted / each.measured - 1));
    }
  }
  const std::string estimates =
      off.empty() ? "" : fmt::format("Estimates were {:.1f} % of the step off in the median. ", 100 * median_of(off));
  return fmt::format("{}{} of {} bounds held. {} shipped, {} from here.", estimates, held, bounds, past.size() - here,
                     here);
}

void draw_dots(const std::vector<PastPrediction>& past) {
  ImDrawList* draw = ImPlot::GetPlotDrawList();
  const ImVec2 mouse = ImGui::GetMousePos();
  const PastPrediction* under_mouse = nullptr;
  float nearest = px(8) * px(8);
  ImPlot::PushPlotClipRect();
  for (const PastPrediction& each : past) {
    const ImVec2 at = ImPlot::PlotToPixels(predicted_gain(each), measured_gain(each));
    const ImU32 colour = u32(each.breaks()       ? palette().bad
                             : each.is_from_here ? palette().accent
                                                 : palette().text,
                             0.85f);
    if (each.at_most)
      draw->AddCircle(at, px(3.5f), colour, 0, px(1.5f));
    else
      draw->AddCircleFilled(at, px(3.5f), colour);
    const float far = (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
    if (far >= nearest) continue;
    nearest = far;
    under_mouse = &each;
  }
  ImPlot::PopPlotClipRect();
  if (!under_mouse || !ImPlot::IsPlotHovered()) return;
  const std::string text =
      fmt::format("{} on {}: predicted {}{}, measured {}{}", under_mouse->stage, under_mouse->device,
                  under_mouse->at_most ? "at most " : "", factor_text(predicted_gain(*under_mouse)),
                  factor_text(measured_gain(*under_mouse)), under_mouse->is_from_here ? " in this project" : "");
  ImGui::SetTooltip("%s", in_print(text).c_str());
}

// On a logarithmic axis a factor is a distance, so the band is as wide everywhere.
void draw_band(double low, double high, const Interval& band) {
  const std::array ends{low, high};
  ImPlotSpec line;
  line.LineColor = palette().quiet;
  line.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotLine("##right", ends.data(), ends.data(), 2, line);
  if (!band.known()) return;
  const std::array below{low * band.low, high * band.low}, above{low * band.high, high * band.high};
  ImPlotSpec spec;
  spec.FillColor = palette().quiet;
  spec.FillAlpha = 0.2f;
  spec.Flags = ImPlotItemFlags_NoLegend;
  ImPlot::PlotShaded("##band", ends.data(), below.data(), above.data(), 2, spec);
}

int gain_number(double value, char* text, int size, void*) {
  return std::snprintf(text, static_cast<std::size_t>(size), "%.2gx", value);
}

}  // namespace

void draw_past_predictions(const std::vector<PastPrediction>& past) {
  text_strong("Predicted and measured");
  text_quiet_wrapped(in_print(sentence_of(past)));
  double low = 0.9, high = 1.2;
  for (const PastPrediction& each : past) {
    low = std::min({low, predicted_gain(each), measured_gain(each)});
    high = std::max({high, predicted_gain(each), measured_gain(each)});
  }
  low /= 1.1;
  high *= 1.1;
  const float side = std::min(ImGui::GetContentRegionAvail().x, px(300));
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  if (ImPlot::BeginPlot("##past", ImVec2(ImGui::GetContentRegionAvail().x, side),
                        ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend)) {
    ImPlot::SetupAxes("predicted gain", "measured gain", ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
    for (const ImAxis axis : {ImAxis_X1, ImAxis_Y1}) {
      ImPlot::SetupAxisScale(axis, ImPlotScale_Log10);
      ImPlot::SetupAxisTicks(axis, gain_ticks.data(), static_cast<int>(gain_ticks.size()));
      ImPlot::SetupAxisFormat(axis, gain_number);
      ImPlot::SetupAxisLimits(axis, low, high, ImPlotCond_Always);
    }
    ImPlot::SetupFinish();
    draw_band(low, high, error_band(record_of("", past.front().device, false, past)));
    draw_dots(past);
    ImPlot::EndPlot();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  text_quiet_wrapped("Filled: an estimate. Hollow: \"at most\", which holds below the line. Band: 95 % of estimates.");
  mark("advisor.past");
}

}  // namespace stepladder
