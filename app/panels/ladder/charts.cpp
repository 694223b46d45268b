// Draws Ladder's curves: losses, their differences from the baseline's on the same axis, and the ECDF of step times.
// All rungs are drawn, and only the baseline and the selected one are strong.
#include <imgui.h>

#include <algorithm>
#include <utility>

#include "app/desktop/models/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr std::size_t most_in_legend = 7;  // more would hide the curves; the rows above have the colours

// All rungs, the baseline and the selected one emphasised, the others thin. `values` gives each run's points.
template <class Values>
std::vector<Curve> curves(const LadderCurves& shown, Values values) {
  std::vector<Curve> list;
  constexpr std::ptrdiff_t few = 8;  // of more repeats each is thin, else they would be one broad band
  const auto is_crowded = [&](int rung) {
    return std::ranges::count(shown.model.losses, rung, &LossCurve::rung) > few;
  };
  const bool crowds_selected = is_crowded(shown.selected), crowds_baseline = is_crowded(shown.baseline);
  const auto add_where = [&](auto&& condition) {
    for (const LossCurve& loss : shown.model.losses) {
      if (!condition(loss.rung)) continue;
      Curve curve = values(loss);
      if (curve.x.empty()) continue;
      const bool strong = loss.rung == shown.selected || loss.rung == shown.baseline;
      curve.label = loss.title + "##" + std::to_string(loss.run);
      const bool is_thin = !strong || (loss.rung == shown.selected ? crowds_selected : crowds_baseline);
      curve.colour = faded(rung_colour(shown.model.colour_of(loss.rung)), is_thin ? 0.55f : 1.0f);
      curve.weight = is_thin ? 1.1f : 2.2f;
      curve.in_legend = loss.repeat == 0 && shown.model.rungs.size() <= most_in_legend;
      curve.order = loss.rung;
      curve.number = shown.model.colour_of(loss.rung);
      curve.is_context = !strong;
      curve.stands_out = strong && !is_thin;
      list.push_back(std::move(curve));
    }
  };
  add_where([&](int rung) { return rung != shown.baseline && rung != shown.selected; });
  add_where([&](int rung) { return rung == shown.baseline && rung != shown.selected; });
  add_where([&](int rung) { return rung == shown.selected; });
  return list;
}

// Step times that differ by more than five times need a log axis to be readable at both ends.
bool needs_log_axis(const LadderModel& model) {
  double least = missing;
  double most = missing;
  for (const auto& [run, ecdf] : model.ecdf) {
    if (ecdf.dt_ms.empty() || ecdf.dt_ms.front() <= 0) continue;
    least = is_missing(least) ? ecdf.dt_ms.front() : std::min(least, ecdf.dt_ms.front());
    most = is_missing(most) ? ecdf.dt_ms.back() : std::max(most, ecdf.dt_ms.back());
  }
  return !is_missing(least) && most > 5 * least;
}

}  // namespace

void draw_ladder_losses(LadderAxis& axis, const LadderCurves& shown, ImVec2 size, Commands& commands) {
  const LadderModel& model = shown.model;
  const float gap = px(16);
  const bool has_differences = model.rungs.size() > 1;  // a baseline alone has none
  const bool strip = size.y > px(290) && has_differences;
  const float upper = strip ? (size.y - gap) * 0.52f : size.y;
  ImGui::BeginGroup();
  begin_card("##loss", ImVec2(size.x, upper));
  const ImVec2 corner = ImGui::GetCursorPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  std::int64_t behind = 0;
  double last_x = missing;  // of all curves, so that the differences beneath have the same axis
  for (const LossCurve& loss : model.losses) {
    behind += loss.behind;
    if (!loss.points.x.empty())
      last_x = is_missing(last_x) ? loss.points.x.back() : std::max(last_x, loss.points.x.back());
  }
  draw_chart({.id = "loss",
              .title = "Loss",
              .note = behind_text(behind),
              .x_label = std::string(axis_title_of(model.comparison_axis)),
              .curves = curves(shown,
                               [](const LossCurve& loss) {
                                 return Curve{.x = loss.points.x,
                                              .y = loss.points.y,
                                              .levels = &loss.levels,
                                              .low = loss.low,
                                              .high = loss.high};
                               }),
              .floor = model.loss_floor,
              .floor_label = "source entropy",
              .x_labelled = !strip,
              .caption = shown.caption,
              .shared = &axis.x,
              .commands = &commands,
              .title_room = px(140)});
  ImGui::SetCursorPos(ImVec2(right - px(130), corner.y - px(5)));
  static const std::vector<std::string> axes = [] {
    std::vector<std::string> titles;
    for (const ComparisonAxis each : comparison_axes) titles.emplace_back(title_of(each));
    return titles;
  }();
  int chosen = static_cast<int>(axis.comparison_axis);
  ImGui::PushFont(fonts().regular, small_size);
  if (choice("##axis", "", chosen, axes, px(130))) axis.choose(static_cast<ComparisonAxis>(chosen));
  ImGui::SetItemTooltip("Compare at equal steps (S), tokens (K), time (T), FLOPs (F) or energy (J)");
  ImGui::PopFont();
  mark("ladder.axis");
  end_card();
  if (strip) {
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
    begin_card("##gap", ImVec2(size.x, 0));
    const std::string reference = shown.baseline == 0 ? "baseline" : "rung " + std::to_string(shown.baseline);
    draw_chart({.id = "gap",
                .title = "Loss \xE2\x88\x92 " + reference,
                .note = "parity band \xC2\xB1" + loss_text(model.band) + (behind > 0 ? "; means" : ""),
                .x_label = std::string(axis_title_of(model.comparison_axis)),
                .curves = curves(shown,
                                 [](const LossCurve& loss) {
                                   return Curve{.x = loss.gap.x, .y = loss.gap.y, .levels = &loss.gap_levels};
                                 }),
                .x_until = last_x,
                .band_low = -model.band,
                .band_high = model.band,
                .zero_line = 0,
                .legend = false,
                .caption = shown.caption,
                .shared = &axis.x,
                .commands = &commands,
                .if_empty = model.is_over ? "No difference: one curve" : "Appears with the steps of a second rung"});
    end_card();
  }
  ImGui::EndGroup();
}

void draw_ladder_times(const LadderCurves& shown, ImVec2 size, bool* shows_operators, Commands& commands) {
  const LadderModel& model = shown.model;
  const bool is_log = needs_log_axis(model);
  begin_card("##dt", size);
  const ImVec2 corner = ImGui::GetCursorPos();
  const float right = corner.x + ImGui::GetContentRegionAvail().x;
  draw_chart({.id = "dt",
              .title = "Step time",
              .note = "ECDF",
              .x_label = is_log ? "ms, log scale" : "ms",
              .unit = "of steps",
              .curves = curves(shown,
                               [&](const LossCurve& loss) {
                                 const Ecdf& steps = model.ecdf.at(loss.run);
                                 return Curve{.x = steps.dt_ms, .y = steps.share};
                               }),
              .steps_up = true,
              .log_x = is_log,
              .legend = false,
              .caption = shown.caption,
              .commands = &commands,
              .title_room = shows_operators ? px(120) : 0});
  if (shows_operators) {
    ImGui::SetCursorPos(ImVec2(right - px(112), corner.y - px(5)));
    draw_times_switch(*shows_operators);
  }
  end_card();
}

}  // namespace stepladder
