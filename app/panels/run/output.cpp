#include <imgui.h>

#include <string>

#include "app/desktop/commands/run_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"
#include "app/text/format.h"

namespace stepladder {

void draw_run_console(const RunDetail& detail) {
  if (detail.console.empty())
    return text_quiet_wrapped("No console output. `stepladder watch -- PROGRAM` records a program's output.");
  ImGui::BeginChild("##console", ImVec2(0, 0), ImGuiChildFlags_None, ImGuiWindowFlags_HorizontalScrollbar);
  ImGui::PushFont(fonts().mono, 13);
  draw_rows(detail.console.size(), [&](std::size_t i) {
    const std::string& line = detail.console[i];
    ImGui::TextUnformatted(line.data(), line.data() + line.size());
  });
  ImGui::PopFont();
  ImGui::EndChild();
}

void draw_run_samples(int& sample, const RunDetail& detail) {
  if (detail.samples.empty())
    return text_quiet_wrapped("No text samples. `stepladder train --sample-every N` writes one every N steps.");
  const auto count = static_cast<int>(detail.samples.size());
  if (sample >= count) sample = -1;
  const int at = sample < 0 ? count - 1 : sample;
  ImGui::BeginChild("##steps", ImVec2(px(130), 0));
  for (int i = count - 1; i >= 0; --i) {
    const std::string item =
        "step " + grouped(detail.samples[static_cast<std::size_t>(i)].step) + "##" + std::to_string(i);
    if (ImGui::Selectable(item.c_str(), i == at)) sample = i;
  }
  ImGui::EndChild();
  same_line(16);
  ImGui::BeginChild("##text", ImVec2(0, 0));
  ImGui::PushTextWrapPos(0);
  ImGui::PushFont(fonts().mono, 13.5f);
  const std::string& text = detail.samples[static_cast<std::size_t>(at)].text;
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopFont();
  ImGui::PopTextWrapPos();
  ImGui::EndChild();
}

void draw_run_checkpoints(const Workspace& workspace, const RunEntry& shown, const RunDetail& detail,
                          Commands& commands) {
  if (detail.checkpoints.empty())
    return text_quiet_wrapped("No checkpoints. `stepladder train --save-every N` saves one every N steps.");
  const bool over = is_over(shown.run.status);
  for (auto it = detail.checkpoints.rbegin(); it != detail.checkpoints.rend(); ++it) {
    ImGui::PushID(static_cast<int>(it->step));
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(("step " + grouped(it->step)).c_str());
    ImGui::SameLine(px(130));
    if (change_button(workspace, "Fork", "", "Starts a new run from this checkpoint"))
      commands.push_back(ForkRun{shown.run.id, it->step});
    if (over && it == detail.checkpoints.rbegin()) {
      same_line(8);
      const std::int64_t to = it->step < shown.run.planned_steps ? shown.run.planned_steps : 2 * it->step;
      if (change_button(workspace, ("Resume to step " + grouped(to)).c_str(), "", "Continues this run and its curves"))
        commands.push_back(ResumeRun{shown.run.id, to});
    }
    same_line(16);
    ImGui::AlignTextToFramePadding();
    text_cut(it->folder.string(), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    ImGui::PopID();
  }
}

}  // namespace stepladder
