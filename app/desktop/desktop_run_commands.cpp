// Carries out commands about runs and ladders: launch, stop, repeat, resume, and read what panels show.
#include <algorithm>
#include <utility>

#include "app/desktop/desktop_app.h"
#include "app/environment.h"
#include "app/format.h"
#include "app/launch/noise_runs.h"
#include "app/launch/recipe_fields.h"
#include "app/launch/sweep.h"
#include "app/machines/far_command.h"
#include "app/preset_ladder.h"
#include "app/verdict_text.h"
#include "engine/stage.h"

namespace stepladder {

const DeviceReport& DesktopApp::device() const {
  if (!workspace_.device)
    throw std::runtime_error("Stepladder is still detecting the hardware: try again in a moment.");
  return *workspace_.device;
}

void DesktopApp::execute(const LaunchLadder& launch) {
  if (!session_) return;
  if (!launch.on.empty()) {
    const auto machine =
        std::find_if(workspace_.machines.begin(), workspace_.machines.end(),
                     [&](const MachineStatus& status) { return status.machine.alias.text() == launch.on; });
    if (machine == workspace_.machines.end()) return;
    machines_->start(machine->machine.alias,
                     std::make_shared<FarLadder>(ladder_there(machine->machine, launch.request, launch.swept,
                                                              assets_folder() / "tinyshakespeare.txt")));
    return show("machines");
  }
  const LaunchedLadder launched =
      session_->launch_ladder(launch.request, launch.plan ? *launch.plan : plan_of(launch.request, device()));
  workspace_.add_ladder(store_, launched.ladder, launched.runs);
  show("live");
}

void DesktopApp::execute(const PlanLadder& asked) {
  workspace_.launch_plan = {.asked = text_of(asked.request), .plan = {}, .problem = ""};
  try {
    LaunchPlan& made = workspace_.launch_plan;
    made.plan = plan_of(asked.request, device());
    std::vector<Recipe> recipes;
    for (const Rung& rung : made.plan.rungs) recipes.push_back(rung.recipe);
    made.first_step = estimate_step(recipes.front(), device(), workspace_.hardware);
    made.seconds = estimate_seconds(recipes, device(), workspace_.hardware);
  } catch (const RecipeError& error) {  // not a message: the form shows it
    workspace_.launch_plan.problem = error.sentence().worded(label_of);
  } catch (const std::exception& error) {
    workspace_.launch_plan.problem = error.what();
  }
}

void DesktopApp::execute(const SaveLadderPreset& save) {
  save_ladder_preset(save.name, save.draft);
  workspace_.saved_ladders = saved_ladders();
  notice("Saved as " + saved_ladder(save.name).string());
}

void DesktopApp::execute(const OpenLadderPreset& open) {
  workspace_.proposal = open.is_shipped ? draft_of(preset_ladder(ladder_preset(open.name), device()))
                                        : read_ladder_file(saved_ladder(open.name));
  ++workspace_.proposals;
}

void DesktopApp::execute(const ProposeLadder& propose) {
  const Ladder* ladder = workspace_.ladder(propose.ladder);
  if (!ladder) return;
  workspace_.proposal = draft_of(measure_here(*ladder, store_.runs_of(ladder->id), device()));
  ++workspace_.proposals;
  show("launch");
}

void DesktopApp::execute(const ProposeStage& propose) {
  const RunEntry* entry = workspace_.find(propose.run);
  if (!entry) return;
  workspace_.proposal = draft_of({.name = entry->run.name + " + " + propose.words,
                                  .base = recipe_from_json(entry->run.recipe),
                                  .rungs = {{.stages = {all_stages().front().id}}, propose.rung}});
  ++workspace_.proposals;
  show("launch");
}

void DesktopApp::draw_adoption() {
  if (!adoption_.popup.draw() || !adoption_.command || !session_) return;
  session_->adopt(adoption_.runs);
  commands_.push_back(*std::exchange(adoption_.command, std::nullopt));
}

void DesktopApp::execute(const Repeat& repeat) {
  if (!session_) return;
  workspace_.add_runs(store_, session_->repeat(repeat.runs, repeat.times));
  show("live");
}

void DesktopApp::execute(const ResumeRun& resume) {
  if (!session_) return;
  const RunEntry* entry = workspace_.find(resume.run);
  if (!entry) return;
  Recipe recipe = recipe_from_json(entry->run.recipe);
  recipe.steps = resume.steps;
  session_->resume(resume.run, recipe);
  workspace_.goes_on(store_, resume.run);
  show("live");
}

void DesktopApp::execute(const LoadResumable&) {
  workspace_.resumable.clear();
  for (const RunId id : runs_with_checkpoint_folders(store_.file())) {
    const RunEntry* entry = workspace_.find(id);
    if (!entry || !is_over(entry->run.status)) continue;
    const std::vector<Checkpoint> saved = run_checkpoints(checkpoint_owner(store_.file(), entry->run));
    if (!saved.empty()) workspace_.resumable.push_back({id, saved.back().step});
  }
  std::sort(workspace_.resumable.begin(), workspace_.resumable.end(),
            [](const ResumableRun& a, const ResumableRun& b) { return a.run > b.run; });
}

void DesktopApp::execute(const ContinueLadder& asked) {
  if (!session_) return;
  const std::vector<RunId> continued = session_->continue_ladder(asked.ladder);
  if (continued.empty()) return notice("Nothing of this ladder is left to train");
  std::vector<RunId> repeats;
  for (const RunId id : continued) {
    if (workspace_.find(id))
      workspace_.goes_on(store_, id);
    else
      repeats.push_back(id);
  }
  workspace_.add_runs(store_, repeats);
  show("live");
}

void DesktopApp::execute(const ForkRun& fork) {
  if (!session_) return;
  const RunEntry* entry = workspace_.find(fork.run);
  if (!entry) return;
  RunSpec asked{.base = recipe_from_json(entry->run.recipe), .fork_of = fork.run, .fork_step = fork.step};
  if (fork.step >= asked.base.steps) asked.base.steps = fork.step + asked.base.steps;
  workspace_.add_runs(store_, {session_->launch_run(asked, device())});
  show("live");
}

void DesktopApp::execute(const StopRun& stop) {
  if (!session_) return;
  if (workspace_.is_ours(stop.run)) return session_->stop(stop.run);
  if (asks_machine(stop.run, "stop")) return;
  store_.processes().request(stop.run, RunRequest::stop);
  notice("Asked the process that trains it to stop");
}

void DesktopApp::execute(const StopAll&) {
  if (!session_) return;
  execute(StopVerification{});
  if (workspace_.trains_here()) return session_->stop_all();
  // The waiting ones first, so that none of them begins.
  for (auto other = workspace_.others().rbegin(); other != workspace_.others().rend(); ++other)
    store_.processes().request(*other, RunRequest::stop);
}

void DesktopApp::execute(const PauseRun& pause) {
  if (!session_) return;
  if (workspace_.is_ours(pause.run)) return session_->pause(pause.run, pause.paused);
  if (asks_machine(pause.run, pause.paused ? "pause" : "continue")) return workspace_.pause(pause.paused);
  store_.processes().request(pause.run, pause.paused ? RunRequest::pause : RunRequest::resume);
  workspace_.pause(pause.paused);
}

void DesktopApp::execute(const MoveInQueue& move) {
  if (!session_) return;
  if (workspace_.is_ours(move.run)) return session_->move_to(move.run, move.place);
  store_.processes().request(move.run, QueuePlace{move.place});
  notice("Asked the process that trains it to change the order");
}

void DesktopApp::execute(const ConfirmSpeedup& asked) {
  if (!session_) return;
  SpeedupQuestion question{.max_repeats = asked.max_repeats};
  for (const RunEntry* entry : workspace_.runs_of(asked.ladder)) {
    if (entry->run.rung == asked.rung && !question.run) question.run = entry->run.id;
    if (entry->run.rung == asked.baseline && !question.base) question.base = entry->run.id;
  }
  workspace_.verification = {.asked = asked, .answers = {}, .open = false};
  session_->confirm(question);
  workspace_.verification.open = true;
  show_confirmation();
}

void DesktopApp::execute(const StopVerification&) {
  if (!session_) return;
  session_->stop_confirming();
  show_confirmation();
}

void DesktopApp::execute(const MeasureNoise&) {
  constexpr double run_seconds = 4;
  constexpr int rounds = 7;
  if (!session_) return;
  LadderRequest request = noise_request(run_seconds, device(), workspace_.hardware);
  request.repeats = rounds;
  execute(LaunchLadder{.request = std::move(request)});
}

void DesktopApp::execute(const VerifyBest& asked) {
  if (!session_) return;
  const std::vector<Run> runs = store_.runs_of(asked.ladder);
  session_->refuse_others(runs, "the sweep");
  const Ladder* ladder = workspace_.ladder(asked.ladder);
  const std::string name = ladder ? ladder->name : "sweep";
  execute(LaunchLadder{.request = verification_of_best(asked.results, asked.result, runs, name)});
}

void DesktopApp::show_confirmation() {
  const SpeedupConfirmation* asked = session_->confirmation();
  Verification& verification = workspace_.verification;
  if (!asked || !verification.open) return;
  std::vector<RunId> unknown;
  for (const RunId id : asked->round()) {
    if (!workspace_.find(id)) unknown.push_back(id);
  }
  try {
    if (!unknown.empty()) workspace_.add_runs(store_, unknown);
  } catch (const StorageError& error) {  // ingest calls this too, and doesn't catch it
    session_->stop_confirming();
    verification.open = false;
    return complain(error.what());
  }
  verification.answers = asked->estimates();
  verification.open = asked->is_open();
  if (verification.open) return;
  using State = SpeedupConfirmation::State;
  const SpeedupAnswer& answer = asked->answer();
  if (asked->state() == State::stopped) return;  // by the user, who needs no message
  if (asked->state() == State::answered && answer.speedup.worst() == Trust::trusted) {
    notice("After " + std::to_string(answer.repeats) + " runs each: " + verdict_text(answer.speedup) + ", " +
           factor_text(answer.speedup.factor));
  } else {
    complain(answer.reason);
  }
}

void DesktopApp::execute(const LoadSeries& load) {
  workspace_.load_series(store_, load.run);
}

void DesktopApp::execute(const LoadExcerpt& load) {
  workspace_.load_excerpt(store_, load.run, load.most);
}

void DesktopApp::execute(const LoadDetail& load) {
  workspace_.load_detail(store_, load.run);
  workspace_.environment = environment_json();
}

void DesktopApp::execute(const LoadMetrics& load) {
  workspace_.load_metrics(store_, load.run);
}

void DesktopApp::execute(const WantFigures& wanted) {
  workspace_.wanted_figures = wanted.figures;
}

// Reads the parts of a step only for runs that were trained here, and only for the newest.
void DesktopApp::execute(const LoadAdvice& load) {
  constexpr std::size_t most_read = 100;
  const RunId about = load.about;
  std::vector<AdviceRun> project;
  std::size_t read = 0;
  for (auto entry = workspace_.runs().rbegin(); entry != workspace_.runs().rend(); ++entry) {
    if (!is_over(entry->run.status)) continue;
    AdviceRun run{.run = &entry->run, .summary = &entry->summary};
    const bool wanted = entry->run.id == about || (entry->run.source == "launched" && read++ < most_read);
    if (wanted) run.parts = store_.recordings().mean_parts(entry->run, entry->summary.warmup_steps);
    project.push_back(run);
  }
  std::reverse(project.begin(), project.end());
  const Overview loss = store_.overview(about, Quantity::loss);
  for (AdviceRun& run : project) {
    if (run.run->id == about) run.loss = &loss;
  }
  if (load.chosen) workspace_.shown_run = about;
  workspace_.advice = {.about = about,
                       .made_for = workspace_.version,
                       .list = advise(project, about, workspace_.hardware, known_stages()),
                       .outcomes = advice_held(project, workspace_.hardware, known_stages())};
}

}  // namespace stepladder
