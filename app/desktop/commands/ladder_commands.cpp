// Launches ladders, plans and proposes them, and verifies their factors.
#include "app/desktop/commands/ladder_commands.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/desktop/desktop_state.h"
#include "app/desktop/own_program.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/desktop/workspace/verification.h"
#include "app/host/environment.h"
#include "app/launch/noise_runs.h"
#include "app/launch/preset_ladder.h"
#include "app/launch/recipe_fields.h"
#include "app/launch/sweep.h"
#include "app/machines/far_command.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

void fill_form(DesktopState& desktop, LadderDraft draft) {
  desktop.panels.send("launch", {std::move(draft)});
}

}  // namespace

void commands::execute(DesktopState& desktop, const LaunchLadder& launch) {
  if (!desktop.can_train()) return;
  if (!launch.on.empty()) {
    const auto machine = std::ranges::find_if(desktop.workspace.machines->list, [&](const MachineStatus& status) {
      return status.machine.alias.text() == launch.on;
    });
    if (machine == desktop.workspace.machines->list.end()) return;
    desktop.machines->start(machine->machine.alias,
                            std::make_shared<FarLadder>(ladder_there(machine->machine, launch.request, launch.swept,
                                                                     assets_folder() / "tinyshakespeare.txt")));
    return desktop.panels.show("machines");
  }
  // Its files may have changed since the plan was shown: they are opened once more before a row is written.
  const LadderPlan plan = plan_of(launch.request, desktop.device());
  const auto is_same = [](const Rung& a, const Rung& b) { return a.recipe == b.recipe; };
  if (launch.plan && !std::equal(plan.rungs.begin(), plan.rungs.end(), launch.plan->rungs.begin(),
                                 launch.plan->rungs.end(), is_same)) {
    desktop.workspace.launch->plan = {};  // the next frame plans it again
    throw std::runtime_error("The files have changed since this ladder was planned. Check it, and launch it again.");
  }
  const LaunchedLadder launched = desktop.session->launch_ladder(launch.request, plan);
  desktop.workspace.add_ladder(desktop.store, launched.ladder, launched.runs);
  desktop.panels.show("live");
}

void commands::execute(DesktopState& desktop, const PlanLadder& asked) {
  desktop.workspace.launch->plan = {.asked = text_of(asked.request), .plan = {}, .problem = ""};
  try {
    LaunchPlan& made = desktop.workspace.launch->plan;
    made.plan = plan_of(asked.request, desktop.device());
    const std::vector<MeasuredRun> runs = desktop.workspace.measured_runs();
    for (const Rung& rung : made.plan.rungs)
      made.steps.push_back(estimate_step(rung.recipe, desktop.device(), desktop.workspace.hardware, runs));
    made.measured = runs.size();
    made.slower = slower_here(made.plan.rungs, desktop.device(), runs);
  } catch (const RecipeError& error) {  // not a message: the form shows it
    desktop.workspace.launch->plan.problem = error.sentence().worded(label_of);
  } catch (const std::exception& error) {
    desktop.workspace.launch->plan.problem = error.what();
  }
}

void commands::execute(DesktopState& desktop, const SaveLadderPreset& save) {
  save_ladder_preset(save.name, save.draft);
  desktop.workspace.launch->presets = saved_ladders();
  desktop.messages.notice("Saved as " + saved_ladder(save.name).string());
}

void commands::execute(DesktopState& desktop, const OpenLadderPreset& open) {
  fill_form(desktop, open.is_shipped ? draft_of(preset_ladder(ladder_preset(open.name), desktop.device()))
                                     : read_ladder_file(saved_ladder(open.name)));
}

void commands::execute(DesktopState& desktop, const ProposeLadder& propose) {
  const Ladder* ladder = desktop.workspace.ladder(propose.ladder);
  if (!ladder) return;
  fill_form(desktop, draft_of(measure_here(*ladder, desktop.store.runs_of(ladder->id), desktop.device())));
  desktop.panels.show("launch");
}

void commands::execute(DesktopState& desktop, const ProposeStage& propose) {
  const RunEntry* entry = desktop.workspace.find(propose.run);
  if (!entry) return;
  fill_form(desktop, draft_of({.name = entry->run.name + " + " + propose.stage,
                               .base = recipe_from_json(entry->run.recipe),
                               .rungs = {{.stages = {all_stages().front().id}}, {.stages = {propose.stage}}},
                               .repeats = 3,
                               .interleave = true}));
  desktop.panels.show("launch");
}

void commands::execute(DesktopState& desktop, const ContinueLadder& asked) {
  if (!desktop.can_train()) return;
  const std::vector<RunId> continued = desktop.session->continue_ladder(asked.ladder);
  if (continued.empty()) return desktop.messages.notice("Nothing of this ladder is left to train");
  std::vector<RunId> repeats;
  for (const RunId id : continued)
    if (desktop.workspace.find(id))
      desktop.workspace.continue_run(desktop.store, id);
    else
      repeats.push_back(id);
  desktop.workspace.add_runs(desktop.store, repeats);
  desktop.panels.show("live");
}

void commands::execute(DesktopState& desktop, const MeasureNoise&) {
  constexpr double run_seconds = 4;
  constexpr int rounds = 7;
  if (!desktop.can_train()) return;
  LadderRequest request = noise_request(run_seconds, desktop.device(), desktop.workspace.hardware);
  request.repeats = rounds;
  commands::execute(desktop, LaunchLadder{.request = std::move(request)});
}

void commands::execute(DesktopState& desktop, const MeasurePeak&) {
  if (desktop.peak_probe.is_active()) return;
  desktop.require_measurable();
  desktop.peak_probe.start(
      [database = desktop.workspace.database](JobControl& job) {
        return run_own_program(database, {"doctor", "--probe"}, "The peak could not be measured", job).is_object();
      },
      desktop.wake);
  desktop.workspace.measures_peak_since = unix_now();
}

void commands::execute(DesktopState& desktop, const StopMeasuringPeak&) {
  desktop.peak_probe.interrupt();
}

void take_peak(DesktopState& desktop) {
  Workspace& workspace = desktop.workspace;
  try {
    const std::optional<bool> taken = desktop.peak_probe.take();
    if (!taken) return;
    if (*taken) {
      workspace.hardware = HardwareTable::load(assets_folder());
      workspace.load(desktop.store);  // every MFU depends on it
      desktop.messages.notice("Measured this machine's peak");
    }
  } catch (const std::exception& error) {  // StorageError
    desktop.messages.show_error(error.what());
  }
  workspace.measures_peak_since = missing;
}

void commands::execute(DesktopState& desktop, const VerifyBest& asked) {
  if (!desktop.can_train()) return;
  const std::vector<Run> runs = desktop.store.runs_of(asked.ladder);
  desktop.session->refuse_others(runs, "the sweep");
  const Ladder* ladder = desktop.workspace.ladder(asked.ladder);
  const std::string name = ladder ? ladder->name : "sweep";
  commands::execute(desktop, LaunchLadder{.request = verification_of_best(asked.results, asked.result, runs, name)});
}

void commands::execute(DesktopState& desktop, const ConfirmSpeedup& asked) {
  if (!desktop.can_train()) return;
  SpeedupQuestion question{.max_repeats = asked.max_repeats, .quiet_patience = std::chrono::minutes(2)};
  for (const RunEntry* entry : desktop.workspace.runs_of(asked.ladder)) {
    if (entry->run.rung == asked.rung && !question.run) question.run = entry->run.id;
    if (entry->run.rung == asked.baseline && !question.base) question.base = entry->run.id;
  }
  *desktop.workspace.verification = {.ladder = asked.ladder,
                                     .baseline = asked.baseline,
                                     .rung = asked.rung,
                                     .max_repeats = asked.max_repeats,
                                     .answers = {}};
  desktop.session->confirm(question);
  desktop.workspace.verification->open = true;
  show_confirmation(desktop);
}

void commands::execute(DesktopState& desktop, const StopVerification&) {
  if (!desktop.can_train()) return;
  Verification& verification = *desktop.workspace.verification;
  if (!verification.open) {
    verification = {.round = std::move(verification.round), .stopped = verification.stopped};
    return;
  }
  desktop.session->stop_confirming();
  show_confirmation(desktop);
}

void commands::execute(DesktopState& desktop, const StartAnyway&) {
  if (desktop.session) desktop.session->start_anyway();
}

namespace {

// Repeats of a stopped verification that are unfinished go to the bin: no ladder shows them or offers to continue them.
void bin_cancelled(DesktopState& desktop) {
  Verification& verification = *desktop.workspace.verification;
  if (!verification.stopped || verification.round.empty()) return;
  std::vector<RunId> cancelled;
  for (const RunId id : verification.round) {
    const RunEntry* entry = desktop.workspace.find(id);
    if (!entry) continue;
    if (!is_over(entry->run.status)) return;  // later
    if (entry->run.status == RunStatus::stopped) cancelled.push_back(id);
  }
  verification.round.clear();
  if (cancelled.empty() || !desktop.session->flush(std::chrono::milliseconds(500))) return;
  for (const RunId id : cancelled) desktop.store.curation().change(id, {.deleted_at = unix_now()});
  desktop.workspace.load(desktop.store);
}

}  // namespace

void show_confirmation(DesktopState& desktop) {
  const SpeedupConfirmation* asked = desktop.session->confirmation();
  Verification& verification = *desktop.workspace.verification;
  if (!asked) return;
  try {
    bin_cancelled(desktop);
    verification.wait = verification.open ? desktop.session->quiet_wait() : std::nullopt;
    if (!verification.open) return;
    verification.round = asked->round();
    std::vector<RunId> unknown;
    for (const RunId id : asked->round())
      if (!desktop.workspace.find(id)) unknown.push_back(id);
    if (!unknown.empty()) desktop.workspace.add_runs(desktop.store, unknown);
  } catch (const StorageError& error) {  // ingest calls this too, and doesn't catch it
    desktop.session->stop_confirming();
    verification.open = false;
    return desktop.messages.show_error(error.what());
  }
  verification.answers = asked->estimates();
  verification.open = asked->is_open();
  if (verification.open) return;
  using State = SpeedupConfirmation::State;
  const SpeedupAnswer& answer = asked->answer();
  verification.stopped = asked->state() != State::answered;
  verification.reason = answer.reason;
  const bool has_card = desktop.panels.is_open("ladder") || desktop.panels.is_open("live");
  if (asked->state() == State::answered && !has_card) desktop.messages.notice(answer.reason);
}

}  // namespace stepladder
