// Launch: the recipe, the data and the rungs of a ladder; the queue and its estimated time.
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <string>

#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/panels/launch/form.h"
#include "app/panels/launch/queue.h"
#include "app/panels/launch/rungs.h"

namespace stepladder {
namespace {

struct State {
  LaunchForm form;
  int proposals_taken = 0;
};

void draw_start(LaunchForm& form, const Workspace& workspace, Commands& commands) {
  const std::vector<PlannedStage> stages = chosen_stages(form, workspace);
  const auto runs = static_cast<std::int64_t>(stages.size()) * form.repeats;
  const std::int64_t tokens = static_cast<std::int64_t>(form.batch) * form.seq;
  const std::string problem = problem_of(form, workspace);
  if (primary_button("Launch ladder", problem.empty())) commands.push_back(LaunchLadder{request_of(form, stages)});
  mark("launch.start");
  ImGui::SameLine();
  if (problem.empty()) {
    ImGui::BeginGroup();
    text_quiet_wrapped((stages.size() == 1 ? "1 rung" : std::to_string(stages.size()) + " rungs") +
                       (form.repeats > 1 ? " x " + std::to_string(form.repeats) + " repeats" : "") + " x " +
                       grouped(form.steps) + " steps of " + grouped(tokens) + " tokens");
    text_quiet_wrapped(grouped(runs * form.steps * tokens) + " tokens in total");
    ImGui::EndGroup();
  } else {
    ImGui::PushTextWrapPos(0);
    text_toned(problem, workspace.device ? Tone::warning : Tone::neutral);
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
  const float start = px(72);
  begin_card("##rungs", ImVec2(0, room.y - queue - start - 2 * gap), true);
  draw_rungs(state.form, workspace);
  end_card();
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  begin_card("##start", ImVec2(0, start), true);
  draw_start(state.form, workspace, commands);
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
