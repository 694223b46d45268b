// Draws the button and popup that continue a run from its newest checkpoint. The list of runs with checkpoints is read
// from disk when the popup opens, not in each frame.
#include <imgui.h>

#include <algorithm>
#include <optional>

#include "app/desktop/commands/run_commands.h"
#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/panels/launch/form.h"
#include "app/panels/launch/parts.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr const char* resume_words = "Resume a run";

void choose_run(ResumeChoice& choice, const ResumableRun& run, const RunEntry& entry) {
  choice.run = run.run;
  const std::int64_t planned = entry.run.planned_steps;
  choice.steps = std::to_string(planned > run.step ? planned : 2 * run.step);
}

void draw_resumable(ResumeChoice& choice, const Workspace& workspace) {
  const std::string typed = list_search("Search runs", workspace.launch->resumable.size());
  const auto rows = static_cast<float>(std::clamp<std::size_t>(workspace.launch->resumable.size(), 1, 10));
  ImGui::BeginChild("##runs", ImVec2(0, rows * ImGui::GetTextLineHeightWithSpacing() + px(4)));
  bool any = false;
  for (const ResumableRun& run : workspace.launch->resumable) {
    const RunEntry* entry = workspace.find(run.run);
    if (!entry || !holds(entry->run.name, typed)) continue;
    any = true;
    const std::string reached = "step " + grouped(run.step) + " of " + grouped(entry->run.planned_steps);
    const ImVec2 corner = ImGui::GetCursorPos();
    const float right = corner.x + ImGui::GetContentRegionAvail().x;
    if (ImGui::Selectable(("##" + std::to_string(run.run)).c_str(), choice.run == run.run,
                          ImGuiSelectableFlags_NoAutoClosePopups))
      choose_run(choice, run, *entry);
    mark("launch.resume." + std::to_string(run.run));
    ImGui::SetCursorPos(corner);
    text_cut(entry->run.name, right - corner.x - px(140), palette().text, fonts().regular, text_size, Cut::middle);
    ImGui::SetCursorPosY(corner.y + px(2));
    text_right(reached, right, fonts().regular, small_size, &palette().quiet);
  }
  if (!any) text_quiet("No matches");
  ImGui::EndChild();
}

// The reason why it cannot be resumed to this step; empty if it can.
std::string resume_problem(const ResumableRun& chosen, const std::optional<std::int64_t>& steps) {
  if (!steps) return "Enter the step at which the run ends.";
  if (*steps <= chosen.step) return "Its checkpoint is of step " + grouped(chosen.step) + "; enter a later one.";
  return "";
}

void draw_popup(ResumeChoice& choice, const Workspace& workspace, Commands& commands) {
  text_quiet_wrapped("Continues a run and its curves from its newest checkpoint.");
  if (workspace.launch->resumable.empty()) {
    text_quiet_wrapped(
        "No run that has ended has a checkpoint. Runs save some if \"Save every\", in Checkpoints at the left, isn't "
        "0.");
    return mark("launch.resume.none");
  }
  draw_resumable(choice, workspace);
  const auto chosen =
      std::ranges::find_if(workspace.launch->resumable, [&](const ResumableRun& run) { return run.run == choice.run; });
  if (chosen == workspace.launch->resumable.end()) return text_quiet("Choose a run.");
  ImGui::AlignTextToFramePadding();
  text_quiet("Train to step");
  ImGui::SameLine(0, px(8));
  ImGui::SetNextItemWidth(px(110));
  text_input("##steps", "steps in total", choice.steps);
  mark("launch.resume.steps");
  ImGui::SameLine(0, px(8));
  const std::optional<std::int64_t> steps = read_count(choice.steps);
  const std::string problem = resume_problem(*chosen, steps);
  if (primary_button("Resume", problem.empty())) {
    commands.push_back(ResumeRun{chosen->run, *steps});
    ImGui::CloseCurrentPopup();
  }
  mark("launch.resume.start");
  if (!problem.empty()) text_sentence(problem, Tone::warning);
}

}  // namespace

void draw_resume(ResumeChoice& choice, const Workspace& workspace, float right, Commands& commands) {
  ImGui::SetCursorPosX(right - button_width(resume_words));
  if (quiet_button(resume_words)) {
    commands.data.resumable = true;
    ImGui::OpenPopup("##resume");
  }
  mark("launch.resume");
  popup_at_item();
  ImGui::SetNextWindowSize(ImVec2(px(460), 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##resume")) {
    draw_popup(choice, workspace, commands);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
