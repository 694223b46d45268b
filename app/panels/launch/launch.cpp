// Launch: the recipe, the data and the rungs of a ladder; the queue and its estimated time.
#include <imgui.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/panel.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/launch/noise_runs.h"
#include "app/panels/launch/form.h"
#include "app/panels/launch/parts.h"
#include "app/text/format.h"
#include "engine/metrics_sampler.h"

namespace stepladder {
namespace {

struct State {
  LaunchForm form;
  FormCheck check;
  RungEditor editor;
  ResumeChoice resume;
  float recipe_height = 0;  // of the recipe's card, as drawn last; 0: not yet
};

// A sentence about programs that would disturb a run of this form if it started now; empty if there are none. While a
// run trains, its own samples have them.
std::string disturbance_of(const CheckedForm& checked, bool is_elsewhere, const Workspace& workspace) {
  if (workspace.running() || !workspace.device || is_elsewhere) return "";
  const std::string busy =
      workspace.launch->others_text(*workspace.device, workspace.device->resolve(checked.request.base.device));
  if (busy.empty()) return "";
  return busy + (checked.request.quiet_patience ? "; each run waits until they leave it the cores that it needs"
                                                : ": they would disturb the runs");
}

// "100", or "100 - 200" if rungs differ.
std::string range_text(const std::vector<Rung>& rungs, const std::function<std::int64_t(const Recipe&)>& value) {
  const auto [least, most] = std::minmax_element(
      rungs.begin(), rungs.end(), [&](const Rung& a, const Rung& b) { return value(a.recipe) < value(b.recipe); });
  const std::string text = grouped(value(least->recipe));
  return value(least->recipe) == value(most->recipe) ? text : text + " \xE2\x80\x93 " + grouped(value(most->recipe));
}

// "9 rungs x 3 repeats = 27 runs of 100 steps, 768 tokens each; left out: padded-vocab"
std::string size_text(const CheckedForm& checked) {
  const LadderRequest& request = checked.request;
  const std::size_t rungs = checked.plan ? checked.plan->plan.rungs.size() : request.rungs.size();
  std::string text = plural(rungs, checked.is_sweep ? "combination" : "rung");
  if (request.repeats > 1)
    text += " \xC3\x97 " + std::to_string(request.repeats) + (request.seeds.empty() ? " repeats" : " seeds");
  const std::size_t runs = rungs * static_cast<std::size_t>(request.repeats);
  if (checked.is_sweep || request.repeats > 1) text += " = " + plural(runs, "run");
  if (!checked.plan || checked.plan->plan.rungs.empty()) return text;
  const std::vector<Rung>& planned = checked.plan->plan.rungs;
  text += " \xC3\x97 " + range_text(planned, [](const Recipe& recipe) { return recipe.steps; }) + " steps of " +
          range_text(planned, [](const Recipe& recipe) { return recipe.tokens_per_step(); }) + " tokens";
  std::string left_out;
  for (const SkippedRung& each : checked.plan->plan.skipped)
    left_out += (left_out.empty() ? "; left out: " : ", ") + each.stage;
  return text + left_out;
}

// "about 12 min of steps in all, 4 s a step of the baseline: a rough estimate from ..."; "..., 40 ms a step of the
// baseline, by 3 runs of this recipe here; up to 1.2 s with bf16 autocast, by 1 run of this recipe here; 2.1 times as
// long as on a quiet machine"; empty if nothing is known.
std::string duration_of(const CheckedForm& checked, bool is_elsewhere, const Workspace& workspace) {
  if (!checked.plan || checked.plan->steps.empty()) return "";
  const std::vector<StepEstimate>& steps = checked.plan->steps;
  double slowdown = 1;
  if (!is_elsewhere && workspace.device && !workspace.running()) {
    const std::string device = workspace.device->resolve(checked.request.base.device);
    if (device == "cpu")
      slowdown = workspace.launch->load.slowdown(needed_cores(device, workspace.device->cpu_cores, 1));
  }
  const double all = seconds_of(steps, slowdown);
  if (is_missing(all)) return "";
  const auto step_of = [&](const StepEstimate& step) { return step.seconds_beside(slowdown); };
  const auto slowest = std::ranges::max_element(steps, {}, step_of);
  const double first = step_of(steps.front());
  std::string text = "about " + rough_duration_text(all * checked.request.repeats) + " of steps in all, " +
                     rough_duration_text(first) + " a step of the baseline" + basis_text(steps.front());
  if (step_of(*slowest) > 1.5 * first)
    text += "; up to " + rough_duration_text(step_of(*slowest)) + " with " +
            checked.plan->plan.rungs[static_cast<std::size_t>(slowest - steps.begin())].title + basis_text(*slowest);
  if (slowdown > 1.1 && !std::ranges::all_of(steps, &StepEstimate::is_disturbed))
    text += "; " + decimals(slowdown, 1) + " times as long as on a quiet machine";
  return text;
}

// The smallest gain that the planned number of repeats can show on this machine; empty if its noise isn't known, or for
// another machine.
std::string seen_with(const CheckedForm& checked, bool is_elsewhere, const Workspace& workspace) {
  if (!workspace.device || is_elsewhere || checked.is_sweep) return "";
  const std::string device = workspace.device->resolve(checked.request.base.device);
  const RunSpread spread = expected_spread(device, workspace.device->hardware(device), workspace.hardware);
  const std::string text = smallest_gain_text(spread, static_cast<std::size_t>(checked.request.repeats));
  const std::string by =
      spread.from == SpreadFrom::project ? "by this project's repeats" : "by what is usual elsewhere";
  return text.empty() ? "" : text + ", " + by;
}

// Draws the choice of this machine or another one; nothing if there are no others.
void draw_where(std::string& where, const Workspace& workspace) {
  if (workspace.machines->list.empty()) return;
  std::vector<std::string> names = {"This machine"};
  int at = 0;
  for (const MachineStatus& status : workspace.machines->list) {
    names.push_back(status.machine.alias.text());
    if (status.machine.alias.text() == where) at = static_cast<int>(names.size()) - 1;
  }
  if (at == 0) where.clear();
  if (choice("##where", "Where", at, names, px(150))) where = at == 0 ? "" : names[static_cast<std::size_t>(at)];
  mark("launch.where");
  ImGui::SameLine(0, px(16));
}

// Draws the smallest gain that the ladder can show, and a button that measures the noise behind it.
void draw_noise(const std::string& noise, const Workspace& workspace, Commands& commands) {
  if (noise.empty()) return;
  const float button = button_width("Measure noise") + px(12);
  ImGui::AlignTextToFramePadding();
  text_cut(noise, ImGui::GetContentRegionAvail().x - button, palette().quiet, fonts().regular, small_size);
  mark("launch.noise");
  if (workspace.running() || !workspace.waiting().empty()) return;
  ImGui::SameLine(0, px(12));
  if (quiet_button("Measure noise")) commands.push_back(MeasureNoise{});
  mark("launch.measure_noise");
  ImGui::SetItemTooltip("Trains equal runs in turns for about a minute; verdicts on this machine learn from them");
}

void draw_start(const CheckedForm& checked, std::string& where, const std::string& disturbance,
                const Workspace& workspace, Commands& commands) {
  if (primary_button(checked.is_sweep ? "Launch sweep" : "Launch ladder", checked.problem.empty()))
    commands.push_back(LaunchLadder{.request = checked.request,
                                    .on = where,
                                    .swept = checked.is_sweep ? checked.swept : std::vector<SweptValue>{},
                                    .plan = checked.plan ? std::optional(checked.plan->plan) : std::nullopt});
  mark("launch.start");
  ImGui::SameLine(0, px(16));
  draw_where(where, workspace);
  ImGui::BeginGroup();
  if (checked.problem.empty()) {
    text_quiet_wrapped(size_text(checked));
    text_quiet_wrapped(duration_of(checked, !where.empty(), workspace));
    mark("launch.estimate");
    draw_noise(seen_with(checked, !where.empty(), workspace), workspace, commands);
    ImGui::PushTextWrapPos(0);
    if (!disturbance.empty()) text_toned(disturbance, Tone::warning);
    ImGui::PopTextWrapPos();
  } else {
    ImGui::PushTextWrapPos(0);
    text_toned(checked.problem, workspace.device ? Tone::warning : Tone::neutral);
    ImGui::PopTextWrapPos();
    if (workspace.device) mark("launch.problem");
  }
  ImGui::EndGroup();
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const CheckedForm& checked = state.check.check(state.form, workspace);
  state.form.propose(checked, workspace);
  // A run that has finished meanwhile may be one of this recipe.
  const bool is_known =
      checked.plan && (!checked.plan->problem.empty() ||
                       checked.plan->measured == static_cast<std::size_t>(std::ranges::count(
                                                     workspace.runs(), RunStatus::finished,
                                                     [](const RunEntry& each) { return each.run.status; })));
  if (checked.can_be_planned && !is_known) commands.push_back(PlanLadder{checked.request});
  const ImVec2 corner = ImGui::GetCursorPos();
  text_title("Launch a ladder");
  const ImVec2 below = ImGui::GetCursorPos();
  ImGui::SetCursorPosY(corner.y);
  draw_resume(state.resume, workspace, ImGui::GetContentRegionMax().x, commands);
  ImGui::SetCursorPos(below);
  text_quiet(
      "Trains a baseline, then adds one optimisation per rung, with the same seed and the same tokens. A list, such as "
      "1e-4, 3e-4, in any value makes a sweep.");
  ImGui::Dummy(ImVec2(0, px(6)));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float left = std::clamp(room.x * 0.32f, px(320), px(480));
  const bool is_idle = !workspace.running() && workspace.waiting().empty();
  const float queue = is_idle ? 0 : gap + std::clamp(room.y * 0.3f, px(150), px(280));
  begin_card("##recipe", ImVec2(left, state.recipe_height > 0 ? std::min(room.y, state.recipe_height) : room.y), true);
  draw_launch_form(state.form, checked, commands);
  state.recipe_height = ImGui::GetCursorPosY() + px(10);
  end_card();
  ImGui::SameLine(0, gap);
  ImGui::BeginGroup();
  const std::string disturbance = disturbance_of(checked, !state.form.where.empty(), workspace);
  // With room for a disturbance also without one: the button doesn't move when the load changes.
  const float start = std::clamp(room.y * 0.25f, px(124), px(160));
  const float most = room.y - queue - start - gap;
  // No higher than its rows, so that in a high window what follows stays near them.
  begin_card("##rungs", ImVec2(0, state.editor.height > 0 ? std::min(most, state.editor.height) : most));
  draw_rungs(state.editor, state.form, checked, workspace, commands);
  end_card();
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  begin_card("##start", ImVec2(0, start), true);
  draw_start(checked, state.form.where, disturbance, workspace, commands);
  end_card();
  if (!is_idle) {
    ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
    begin_card("##queue", ImVec2(0, 0), true);
    draw_queue(workspace, commands);
    end_card();
  }
  ImGui::EndGroup();
}

}  // namespace

Panel panels::launch() {
  const auto state = std::make_shared<State>();
  return {.id = "launch",
          .title = "Launch",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .receive =
              [state](const PanelEvent& event) {
                if (const auto* draft = event.as<LadderDraft>()) state->form.take(*draft);
              },
          .least_width = 660};
}

}  // namespace stepladder
