// Launch: the recipe, the data and the rungs of a ladder; the queue and its estimated time.
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <string>

#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/machine_load.h"
#include "app/panels/launch/form.h"
#include "app/panels/launch/queue.h"
#include "app/panels/launch/rungs.h"
#include "engine/metrics_sampler.h"

namespace stepladder {
namespace {

struct State {
  LaunchForm form;
  MachineLoad load;
  int proposals_taken = 0;
};

// What a run of this form would be disturbed by if it started now; empty: nothing. While one trains, the others that it
// competes with are in its own samples.
std::string disturbance_of(const LaunchForm& form, MachineLoad& load, const Workspace& workspace) {
  if (workspace.running() || !workspace.device) return "";
  load.look();
  const std::string device = workspace.device->resolve(request_of(form, {}).base.device);
  if (!load.would_disturb(needed_cores(device, workspace.device->cpu_cores, 1))) return "";
  return load.text() + (form.when_quiet ? "; each run waits until they leave it the cores that it needs"
                                        : ": they would disturb the runs");
}

void draw_start(const LaunchForm& form, const std::string& disturbance, const Workspace& workspace,
                Commands& commands) {
  const LadderRequest request = request_of(form, chosen_rungs(form, workspace));
  std::string problem = problem_of(form, workspace);
  const bool is_planned = workspace.launch_plan.asked == text_of(request);
  if (problem.empty() && !is_planned) commands.push_back(PlanLadder{request});
  if (problem.empty() && is_planned) problem = workspace.launch_plan.problem;
  const std::size_t rungs = is_planned ? workspace.launch_plan.plan.rungs.size() : request.rungs.size();
  const auto runs = static_cast<std::int64_t>(rungs) * form.repeats;
  const std::int64_t tokens = static_cast<std::int64_t>(form.batch) * form.seq;
  if (primary_button("Launch ladder", problem.empty())) commands.push_back(LaunchLadder{request});
  mark("launch.start");
  ImGui::SameLine();
  if (problem.empty()) {
    ImGui::BeginGroup();
    text_quiet_wrapped((rungs == 1 ? "1 rung" : std::to_string(rungs) + " rungs") +
                       (form.repeats > 1 ? " \xC3\x97 " + std::to_string(form.repeats) + " repeats" : "") +
                       " \xC3\x97 " + grouped(form.steps) + " steps of " + grouped(tokens) + " tokens");
    std::string left_out;
    for (const SkippedRung& each : workspace.launch_plan.plan.skipped)
      left_out += (left_out.empty() ? "; left out: " : ", ") + each.stage;
    text_quiet_wrapped(grouped(runs * form.steps * tokens) + " tokens in total" + (is_planned ? left_out : ""));
    if (!disturbance.empty()) {
      ImGui::PushTextWrapPos(0);
      text_toned(disturbance, Tone::warning);
      ImGui::PopTextWrapPos();
    }
    ImGui::EndGroup();
  } else {
    ImGui::PushTextWrapPos(0);
    text_toned(problem, workspace.device ? Tone::warning : Tone::neutral);
    if (workspace.device) mark("launch.problem");
    ImGui::PopTextWrapPos();
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  if (workspace.proposal && state.proposals_taken != workspace.proposals) {
    state.proposals_taken = workspace.proposals;
    state.form.take_plan(*workspace.proposal);
  }
  text_title("Launch a ladder");
  text_quiet("Trains a baseline, then adds one optimisation per rung, with the same seed and the same tokens");
  ImGui::Dummy(ImVec2(0, px(6)));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float left = std::clamp(room.x * 0.36f, px(330), px(520));
  const bool is_idle = !workspace.running() && workspace.waiting().empty();
  const float queue = is_idle ? px(84) : std::clamp(room.y * 0.3f, px(150), px(280));
  begin_card("##recipe", ImVec2(left, room.y), true);
  draw_launch_form(state.form);
  end_card();
  ImGui::SameLine(0, gap);
  ImGui::BeginGroup();
  const std::string disturbance = disturbance_of(state.form, state.load, workspace);
  const float start = disturbance.empty() ? px(72) : px(112);
  begin_card("##rungs", ImVec2(0, room.y - queue - start - 2 * gap), true);
  draw_rungs(state.form, workspace);
  end_card();
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  begin_card("##start", ImVec2(0, start), true);
  draw_start(state.form, disturbance, workspace, commands);
  end_card();
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  begin_card("##queue", ImVec2(0, 0), true);
  draw_queue(workspace, commands);
  end_card();
  ImGui::EndGroup();
}

}  // namespace

Panel panels::launch() {
  const auto state = std::make_shared<State>();
  return {.id = "launch",
          .title = "Launch",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .least_width = 660};
}

}  // namespace stepladder
