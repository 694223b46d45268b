// Live: loss, throughput and step time of the run that trains now, with the rungs before it behind.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <string>

#include "app/desktop/charts.h"
#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

using Column = std::span<const double> (*)(const RunEntry&);

// The run itself on top, its ladder's other runs thin behind it.
std::vector<Curve> curves_of(const Workspace& workspace, const RunEntry& shown, Column column, Commands& commands) {
  std::vector<Curve> curves;
  if (shown.run.ladder) {
    for (const RunEntry* other : workspace.runs_of(*shown.run.ladder)) {
      if (other->run.id == shown.run.id) continue;
      if (!other->loaded) commands.push_back(LoadSeries{other->run.id});
      if (other->steps.empty()) continue;
      curves.push_back({.label = other->run.title + "##" + std::to_string(other->run.id),
                        .x = other->steps,
                        .y = column(*other),
                        .colour = faded(rung_colour(other->run.rung), 0.55f),
                        .weight = 1,
                        .in_legend = other->run.repeat == 0,
                        .order = other->run.rung});
    }
  }
  if (!shown.loaded) commands.push_back(LoadSeries{shown.run.id});
  curves.push_back({.label = shown.run.title,
                    .x = shown.steps,
                    .y = column(shown),
                    .colour = rung_colour(shown.run.rung),
                    .weight = 2.2f,
                    .order = shown.run.rung});
  return curves;
}

void draw_head(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const bool is_running = shown.run.status == RunStatus::running;
  const auto button_width = [](const char* text) {
    return ImGui::CalcTextSize(text).x + 2 * ImGui::GetStyle().FramePadding.x;
  };
  const float stop_width = button_width("Stop run");
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::BeginGroup();
  colour_square(rung_colour(shown.run.rung));
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(6));
  text_title(shown.run.title);
  std::string line = shown.run.name;
  if (!shown.run.hardware.empty()) line += "  -  " + shown.run.hardware;
  line += "  -  " + shown.run.precision;
  if (is_running && workspace.is_paused) line += "  -  paused";
  text_cut(line, right - px(340), palette().quiet, fonts().regular, small_size);
  ImGui::EndGroup();
  ImGui::SameLine(right - stop_width);
  if (is_running) {
    if (quiet_button("Stop run")) commands.push_back(StopRun{shown.run.id});
    mark("live.stop");
    const char* pause = workspace.is_paused ? "Continue" : "Pause";
    const float pause_at = right - stop_width - px(10) - button_width("Continue");
    ImGui::SameLine(pause_at);
    if (quiet_button(pause)) commands.push_back(PauseRun{shown.run.id, !workspace.is_paused});
    mark("live.pause");
    if (!workspace.waiting().empty()) {
      ImGui::SameLine(pause_at - px(10) - button_width("Stop ladder"));
      if (quiet_button("Stop ladder")) commands.push_back(StopAll{});
      mark("live.stop_all");
    }
  } else {
    const Tone tone = shown.run.status == RunStatus::finished ? Tone::good
                      : shown.run.status == RunStatus::failed ? Tone::bad
                                                              : Tone::warning;
    const std::string words(to_string(shown.run.status));
    ImGui::SetCursorPosX(right - pill_size(words).x);
    pill(words, tone);
  }
}

void figure(const std::string& name, const std::string& value) {
  ImGui::BeginGroup();
  text_quiet(name);
  ImGui::PushFont(fonts().semibold, 19);
  ImGui::TextUnformatted(value.c_str());
  ImGui::PopFont();
  ImGui::EndGroup();
}

void draw_figures(const Workspace& workspace, const RunEntry& shown) {
  const Series& series = shown.series;
  const auto done = static_cast<std::int64_t>(series.size());
  const bool any = done > 0;
  const double left = workspace.seconds_left(shown);
  double val_loss = missing;
  for (std::size_t i = series.size(); i > 0 && is_missing(val_loss); --i) val_loss = series.val_loss[i - 1];
  const bool is_running = shown.run.status == RunStatus::running;

  const float each = ImGui::GetContentRegionAvail().x / 6;
  const float start = ImGui::GetCursorPosX();
  const std::array<std::pair<const char*, std::string>, 6> figures = {
      {{"step", grouped(done) + " of " + grouped(shown.run.planned_steps)},
       {"loss", any ? loss_text(series.loss.back()) : "-"},
       {"validation loss", loss_text(val_loss)},
       {"step time", any ? milliseconds_text(series.dt_ms.back()) : "-"},
       {"tokens/s", any ? tokens_per_s_text(shown.tokens_per_s.back()) : "-"},
       {is_running ? "time left" : "status", is_running ? (is_missing(left) ? "after ten steps" : duration_text(left))
                                                        : std::string(to_string(shown.run.status))}}};
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (i > 0) ImGui::SameLine(start + each * static_cast<float>(i));
    figure(figures[i].first, figures[i].second);
  }
  if (is_running || shown.run.status != RunStatus::finished) {
    progress_bar(static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, shown.run.planned_steps)),
                 ImGui::GetContentRegionAvail().x);
  }
}

void draw_charts(const Workspace& workspace, const RunEntry& shown, Commands& commands) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float loss_width = (room.x - gap) * 0.58f;
  const float half = (room.y - gap) / 2;

  begin_card("##loss", ImVec2(loss_width, room.y));
  Chart loss{.id = "loss",
             .title = "Loss",
             .x_label = "step",
             .curves = curves_of(
                 workspace, shown, [](const RunEntry& e) { return std::span<const double>(e.series.loss); }, commands),
             .floor = shown.run.loss_floor,
             .floor_label = "entropy of the source: no model gets below"};
  const bool validated = std::any_of(shown.series.val_loss.begin(), shown.series.val_loss.end(),
                                     [](double value) { return !is_missing(value); });
  if (validated) {
    loss.curves.push_back({.label = "validation",
                           .x = shown.steps,
                           .y = shown.series.val_loss,
                           .colour = palette().text,
                           .points = true,
                           .order = 1000});
  }
  draw_chart(loss);
  end_card();
  ImGui::SameLine(0, gap);
  ImGui::BeginGroup();
  begin_card("##throughput", ImVec2(0, half));
  draw_chart(
      {.id = "throughput",
       .title = "Throughput",
       .x_label = "step",
       .unit = "tokens/s",
       .curves = curves_of(
           workspace, shown, [](const RunEntry& e) { return std::span<const double>(e.tokens_per_s); }, commands),
       .from_zero = true,
       .legend = false});
  end_card();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + gap - ImGui::GetStyle().ItemSpacing.y);
  begin_card("##dt", ImVec2(0, 0));
  draw_chart(
      {.id = "dt",
       .title = "Step time",
       .x_label = "step",
       .unit = "ms",
       .curves = curves_of(
           workspace, shown, [](const RunEntry& e) { return std::span<const double>(e.series.dt_ms); }, commands),
       .from_zero = true,
       .legend = false});
  end_card();
  ImGui::EndGroup();
}

}  // namespace

Panel panels::live() {
  return {.id = "live", .title = "Live", .draw = [](const Workspace& workspace, Commands& commands) {
            const RunEntry* shown = workspace.shown_live();
            if (!shown) {
              empty_state("Nothing has run here yet.",
                          "Start a ladder in Launch; its steps appear here as they are made.");
              return;
            }
            draw_head(workspace, *shown, commands);
            ImGui::Dummy(ImVec2(0, px(2)));
            if (!shown->run.reason.empty() && shown->run.status != RunStatus::running) {
              ImGui::PushTextWrapPos(0);
              text_toned(shown->run.reason, shown->run.status == RunStatus::failed ? Tone::bad : Tone::warning);
              ImGui::PopTextWrapPos();
            }
            draw_figures(workspace, *shown);
            ImGui::Dummy(ImVec2(0, px(4)));
            draw_charts(workspace, *shown, commands);
          }};
}

}  // namespace stepladder
