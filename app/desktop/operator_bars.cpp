#include "app/desktop/operator_bars.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct Columns {
  float left, bars, bars_end, ms_right, change_right;
};

void draw_figures(const Columns& at, double ms, const double* before_ms, double whole_ms, bool is_clear, ImFont* font) {
  ImGui::SameLine();
  text_right(ms_figure(ms, whole_ms), at.ms_right, font, small_size);
  if (!before_ms) return;
  const double change = ms - *before_ms;
  const bool is_same = std::fabs(change) < 0.001 * whole_ms;  // less than a thousandth of a step
  const ImVec4 colour = is_same || !is_clear ? palette().quiet : tone_colour(change < 0 ? Tone::good : Tone::bad);
  const std::string figure = ms_figure(std::fabs(change), whole_ms);
  ImGui::SameLine();
  text_right(is_same ? "=" : (change < 0 ? "-" : "+") + figure, at.change_right, font, small_size, &colour);
}

}  // namespace

KindBars bars_of(const FittedProfile& shown) {
  KindBars bars{KindTimes(shown.profile), step_ms(shown.profile)};
  if (shown.is_comparable) return bars;
  std::array<double, all_operator_kinds.size()> shares{};
  for (const OperatorKind kind : all_operator_kinds)
    shares[static_cast<std::size_t>(kind)] = 100 * bars.times.of(kind) / bars.step_ms;
  return {KindTimes(shares), 100, "% of a step"};
}

void draw_operator_bars(const FittedProfile& shown, const ImVec4& colour, const FittedProfile* before, bool is_clear) {
  const KindBars now = bars_of(shown), was = before ? bars_of(*before) : KindBars{KindTimes(StepProfile{})};
  draw_operator_bars(
      now, [&](OperatorKind) { return colour; }, before ? &was : nullptr, is_clear);
}

void draw_operator_bars(const KindBars& shown, const std::function<ImVec4(OperatorKind)>& colour_of,
                        const KindBars* before, bool is_clear) {
  std::vector<KindTimes> times{shown.times};
  if (before) times.push_back(before->times);
  const std::vector<OperatorKind> kinds = kinds_in(times);
  if (kinds.empty()) return;
  const double whole = shown.step_ms, whole_before = before ? before->step_ms : 0;
  const double longest = std::max(times.front().of(kinds.front()), times.back().of(kinds.front()));
  const float left = ImGui::GetCursorPosX();
  const float right = left + ImGui::GetContentRegionAvail().x - px(4);
  const float ms_right = before ? right - px(62) : right;
  const Columns at{left, left + px(112), ms_right - px(52), ms_right, right};
  const float row_height = px(21);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 corner = ImGui::GetWindowPos();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));

  text_quiet("");
  ImGui::SameLine();
  text_right(shown.unit, at.ms_right, nullptr, small_size, &palette().quiet);
  if (before) {
    ImGui::SameLine();
    text_right("change", at.change_right, nullptr, small_size, &palette().quiet);
  }
  spacing(4);
  for (const OperatorKind kind : kinds) {
    const double ms = times.front().of(kind), ms_before = times.back().of(kind);
    const ImVec2 place(left, ImGui::GetCursorPosY());
    text_cut(std::string(to_string(kind)), at.bars - left - px(6), palette().text, fonts().regular, small_size);
    const float y = corner.y + place.y - ImGui::GetScrollY() + px(8);
    const auto bar = [&](double length_ms, float top, float height, const ImVec4& fill) {
      const float width = (at.bars_end - at.bars) * static_cast<float>(length_ms / longest);
      const float x = corner.x + at.bars - ImGui::GetScrollX();
      if (length_ms > 0)
        draw->AddRectFilled(ImVec2(x, top), ImVec2(x + std::max(px(1), width), top + height), u32(fill), px(2));
    };
    if (at.bars_end - at.bars > px(24)) {
      bar(ms, y - px(5), px(7), colour_of(kind));
      if (before) bar(ms_before, y + px(4), px(3), palette().quiet);
    }
    draw_figures(at, ms, before ? &ms_before : nullptr, whole, is_clear, fonts().regular);
    ImGui::SetCursorPos(ImVec2(left, place.y + row_height));
  }
  spacing(3);
  const float line = corner.y + ImGui::GetCursorPosY() - ImGui::GetScrollY();
  draw->AddLine(ImVec2(corner.x + left, line), ImVec2(corner.x + right, line), u32(palette().line));
  spacing(4);
  text_in("Total", fonts().semibold, small_size);
  draw_figures(at, whole, before ? &whole_before : nullptr, whole, is_clear, fonts().semibold);
  ImGui::PopStyleVar();
}

}  // namespace stepladder
