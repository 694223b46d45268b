// Draws the tornado of `try parts`: a bar for each part, the largest effect first, its 95 % interval on it, better to
// the right. Drawn by hand, as the tries' chart is.
#include "app/panels/tries/parts.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/runs/try_history.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct Bar {
  std::string what, change;
  double gain = missing;  // above 0 is better
  Interval ci95;
};

// In logarithms for times, whose intervals are of the factor.
Bar bar_of(const Json& parts, Json part, bool lower_is_better) {
  part["metric"] = try_text(parts, "metric");
  const bool is_time = is_time_metric(try_text(parts, "metric"));
  const auto gain = [&](double value) { return is_time ? std::log(value) : lower_is_better ? -value : value; };
  Bar bar{.what = try_text(part, "what"), .change = change_text(part), .gain = {}, .ci95 = {}};
  bar.gain = gain(try_number(part, is_time ? "factor" : "difference"));
  if (const auto ci95 = part.find("ci95");
      ci95 != part.end() && ci95->is_array() && ci95->size() == 2 && (*ci95)[0].is_number() && (*ci95)[1].is_number()) {
    const double a = gain((*ci95)[0].get<double>()), b = gain((*ci95)[1].get<double>());
    bar.ci95 = {std::min(a, b), std::max(a, b)};
  }
  return bar;
}

void draw_bar(const Bar& bar, float zero, float scale, float top, float height) {
  if (!std::isfinite(bar.gain)) return;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const auto x = [&](double value) { return zero + static_cast<float>(value) * scale; };
  const bool is_known = bar.ci95.known();
  const ImVec4& colour = is_known && bar.ci95.low > 0    ? palette().good
                         : is_known && bar.ci95.high < 0 ? palette().bad
                                                         : palette().quiet;
  draw->AddRectFilled(ImVec2(std::min(zero, x(bar.gain)), top), ImVec2(std::max(zero, x(bar.gain)), top + height),
                      u32(colour, 0.55f));
  if (!is_known) return;
  const float middle = top + height / 2;
  draw->AddLine(ImVec2(x(bar.ci95.low), middle), ImVec2(x(bar.ci95.high), middle), u32(palette().text), px(1.5f));
  for (const double end : {bar.ci95.low, bar.ci95.high})
    draw->AddLine(ImVec2(x(end), middle - px(4)), ImVec2(x(end), middle + px(4)), u32(palette().text), px(1.5f));
}

}  // namespace

void draw_parts(const Json& parts, bool lower_is_better) {
  std::vector<Bar> bars;
  double widest = 0;
  const auto list = parts.is_object() ? parts.find("parts") : parts.end();
  if (list != parts.end() && list->is_array())
    for (const Json& part : *list)
      if (part.is_object()) bars.push_back(bar_of(parts, part, lower_is_better));
  for (const Bar& bar : bars)
    for (const double value : {bar.gain, bar.ci95.low, bar.ci95.high})
      if (std::isfinite(value)) widest = std::max(widest, std::abs(value));
  if (bars.empty() || !(widest > 0))
    return text_quiet_wrapped("`stepladder try parts` runs a kept change in parts and says which of them did it.");
  const auto size = [](const Bar& bar) { return std::isfinite(bar.gain) ? std::abs(bar.gain) : -1; };
  std::ranges::stable_sort(bars, [&](const Bar& a, const Bar& b) { return size(a) > size(b); });
  text_quiet("Better to the right; with 95 % intervals");
  const float width = ImGui::GetContentRegionAvail().x, names = width * 0.38f, height = px(20);
  const float left = ImGui::GetCursorScreenPos().x, zero = left + names + (width - names) / 2;
  const float scale = 0.46f * (width - names) / static_cast<float>(widest);
  const float top = ImGui::GetCursorScreenPos().y;
  for (const Bar& bar : bars) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    text_cut(bar.what, names - px(10), palette().text, fonts().mono, small_size, Cut::middle);
    draw_bar(bar, zero, scale, at.y + px(2), height - px(6));
    if (ImGui::IsMouseHoveringRect(at, ImVec2(at.x + width, at.y + height)))
      ImGui::SetTooltip("%s: %s", bar.what.c_str(), in_print(bar.change).c_str());
    ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + height));
  }
  ImGui::GetWindowDrawList()->AddLine(ImVec2(zero, top), ImVec2(zero, ImGui::GetCursorScreenPos().y),
                                      u32(palette().quiet), px(1));
  ImGui::Dummy(ImVec2(1, 1));
  mark("tries.tornado");
}

}  // namespace stepladder
