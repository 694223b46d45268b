#include "app/panels/launch/queue.h"

#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"

namespace stepladder {
namespace {

constexpr float buttons_width = 150;

// `place` is its place among those that wait.
void draw_row(const RunEntry& entry, std::size_t place, const Workspace& workspace, Commands& commands) {
  const bool is_running = entry.run.status == RunStatus::running;
  ImGui::PushID(static_cast<int>(entry.run.id));
  colour_square(rung_colour(entry.run.rung));
  ImGui::SameLine();
  text_cut(entry.run.name, ImGui::GetContentRegionAvail().x - px(buttons_width + 150), palette().text, fonts().regular,
           text_size);
  ImGui::SameLine(ImGui::GetContentRegionAvail().x - px(buttons_width + 124));
  text_quiet(is_running ? (workspace.is_paused ? "paused at " : "step ") +
                              grouped(static_cast<std::int64_t>(entry.series().size())) + " of " +
                              grouped(entry.run.planned_steps)
                        : "queued");
  ImGui::SameLine(ImGui::GetContentRegionAvail().x - px(buttons_width - 8));
  ImGui::PushFont(fonts().regular, small_size);
  if (is_running) {
    if (quiet_button(workspace.is_paused ? "Resume" : "Pause"))
      commands.push_back(PauseRun{entry.run.id, !workspace.is_paused});
  } else {
    ImGui::BeginDisabled(place == 0);
    if (quiet_button("Move up")) commands.push_back(MoveInQueue{entry.run.id, place - 1});
    ImGui::EndDisabled();
  }
  ImGui::SameLine();
  if (quiet_button("Stop")) commands.push_back(StopRun{entry.run.id});
  ImGui::PopFont();
  ImGui::PopID();
}

}  // namespace

void draw_queue(const Workspace& workspace, Commands& commands) {
  text_strong("Queue");
  const RunEntry* running = workspace.running();
  const std::vector<const RunEntry*> waiting = workspace.waiting();
  if (!running && waiting.empty()) {
    text_quiet_wrapped("Running and queued runs appear here. Launch a ladder to start one.");
    return;
  }
  const double left = workspace.seconds_left_of_all();
  if (!is_missing(left)) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
    text_quiet("about " + duration_text(left) + " left");
  }
  if (running) {
    draw_row(*running, 0, workspace, commands);
    progress_bar(static_cast<double>(running->series().size()) /
                     static_cast<double>(std::max<std::int64_t>(1, running->run.planned_steps)),
                 ImGui::GetContentRegionAvail().x);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) draw_row(*waiting[i], i, workspace, commands);
  if (quiet_button("Stop all")) commands.push_back(StopAll{});
  mark("launch.stop_all");
}

}  // namespace stepladder
