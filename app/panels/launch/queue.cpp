#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/desktop/commands/run_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/launch/parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

// The line in which a queued run says that it waits for a quiet machine (engine/quiet.h); empty if it doesn't.
std::string quiet_wait_of(const RunEntry& entry, const Workspace& workspace) {
  const RunDetail* detail = workspace.detail(entry.run.id);
  if (entry.run.status != RunStatus::queued || !detail || detail->console.empty()) return "";
  return detail->console.back().starts_with("waiting for a quiet machine") ? detail->console.back() : "";
}

// A run with its progress and, at the right, its buttons. `place` is its place among its process's queued runs.
void draw_row(const RunEntry& entry, std::size_t place, const Workspace& workspace, Commands& commands) {
  const bool is_running = entry.run.status == RunStatus::running;
  const std::string quiet_wait = quiet_wait_of(entry, workspace);
  const char* first_button = !is_running ? "Move up" : workspace.is_paused ? "Resume" : "Pause";
  ImGui::PushID(static_cast<int>(entry.run.id));
  ImGui::PushFont(fonts().regular, small_size);
  const float stop_width = button_width("Stop");
  const float first_width = std::max(button_width("Move up"), button_width("Resume"));
  const float height = ImGui::GetFrameHeight();
  ImGui::PopFont();
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  const float buttons = right - stop_width - first_width - px(8);
  const float progress = buttons - px(152);
  const float top = ImGui::GetCursorPosY();
  const float text_top = top + (height - ImGui::GetTextLineHeight()) / 2;
  ImGui::SetCursorPosY(text_top);
  colour_square(rung_colour(workspace.colour_of(entry.run)));
  ImGui::SameLine();
  text_cut(entry.run.name, progress - ImGui::GetCursorPosX() - px(12), palette().text, fonts().regular, text_size,
           Cut::middle);
  ImGui::SameLine(progress);
  ImGui::SetCursorPosY(text_top + px(2));
  text_quiet(is_running ? (workspace.is_paused ? "paused at " : "step ") + grouped(entry.series().size()) + " of " +
                              grouped(entry.run.planned_steps)
             : quiet_wait.empty() ? "queued, place " + std::to_string(place + 1)
                                  : "waits for quiet");
  if (!is_running)
    ImGui::SetItemTooltip("%s", !quiet_wait.empty()   ? quiet_wait.c_str()
                                : workspace.running() ? "Waits until the runs before it have ended"
                                                      : "Starts as soon as the trainer is ready");
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::SetCursorPos(ImVec2(buttons, top));
  ImGui::BeginDisabled(!is_running && place == 0);
  if (ImGui::Button(first_button, ImVec2(first_width, 0))) {
    if (is_running) {
      commands.push_back(PauseRun{entry.run.id, !workspace.is_paused});
    } else {
      commands.push_back(MoveInQueue{entry.run.id, place - 1});
    }
  }
  if (!is_running) mark("launch.queue." + std::to_string(place) + ".up");
  ImGui::EndDisabled();
  ImGui::SameLine(0, px(8));
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
  std::size_t ours = 0, others = 0;
  for (const RunEntry* run : waiting)
    draw_row(*run, workspace.is_ours(run->run.id) ? ours++ : others++, workspace, commands);
  if (quiet_button("Stop all")) commands.push_back(StopAll{});
  mark("launch.stop_all");
}

}  // namespace stepladder
