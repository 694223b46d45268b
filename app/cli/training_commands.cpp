// `stepladder train`, `ladder`, `pause`, `continue` and `stop`. Mistakes in options are reported before the database or
// a machine is touched. A process that a launcher started trains as a rank: only rank 0 records.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/machines/on_machine.h"
#include "app/cli/progress.h"
#include "app/cli/recipe_options.h"
#include "app/cli/training_place.h"
#include "app/cli/worker.h"
#include "app/exit_status.h"
#include "app/launch/ladder_file.h"
#include "app/launch/preset_ladder.h"
#include "app/launch/step_estimate.h"
#include "app/machines/far_command.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/session/session.h"
#include "engine/ladder_presets.h"
#include "engine/nearest.h"
#include "engine/processes/rendezvous.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

struct TrainOptions {
  RecipeOptions recipe;
  QuietPatience quiet_patience;
  std::string name;
  std::vector<std::string> stages;
  std::string resume;
  std::string fork;
  bool adopts = false;
  OnMachine on;
};

RunId start_training(Session& session, const TrainOptions& options) {
  if (!options.resume.empty()) {
    if (!options.stages.empty()) throw RecipeError("--stage", "changes the run; use --fork to make a new run from it");
    const Run run = find_run(session.store(), options.resume);
    if (options.adopts) session.adopt({run.id});
    session.resume(run.id, options.recipe.over(recipe_from_json(run.recipe)), options.quiet_patience);
    return run.id;
  }
  RunSpec request{.name = options.name, .stages = options.stages, .quiet_patience = options.quiet_patience};
  if (options.fork.empty()) {
    request.base = options.recipe.recipe();
    if (const auto placement = placement_from_environment()) request.base.nproc = placement->world_size;
  } else {
    const auto [parent, step] = find_fork(session.store(), options.fork);
    if (options.adopts) session.adopt({parent.id});
    request.base = options.recipe.over(recipe_from_json(parent.recipe));
    request.fork_of = parent.id;
    request.fork_step = step;
  }
  return session.launch_run(request, session.probe().get());
}

// Trains as one of several processes that a launcher started: all have the same command line, and only rank 0 records.
int train_as_rank(const Placement& placement, Recipe recipe, const std::vector<std::string>& stages) {
  for (const std::string& stage : stages) stage_by_id(stage).apply(recipe);
  recipe.nproc = placement.world_size;
  return run_rank(placement, recipe, interrupted);
}

int train(const TrainOptions& options, const CommonOptions& common) {
  for (const std::string& stage : options.stages) stage_by_id(stage);
  if (options.fork.empty()) options.recipe.over(Recipe{});  // reports mistakes before the database is touched
  if (options.on) return train_on_machine(options.on, common);
  const auto placement = placement_from_environment();
  if (placement && (!options.resume.empty() || !options.fork.empty()))
    throw UsageError("a run is resumed or forked by one process, which starts the others itself: --nproc");
  if (placement && placement->rank > 0) return train_as_rank(*placement, options.recipe.recipe(), options.stages);
  TrainingPlace place(common);
  if (!options.resume.empty() || !options.fork.empty()) {
    if (!place.is_temporary()) open_existing(common.database);
    place.ingest_journals();
  }
  Session session(place.database(), {}, nullptr, place.folders());
  const RunId id = start_training(session, options);
  place.begun();
  say_estimate(session, {id}, session.probe().get());
  const bool has_checkpoints = follow(session, {id});
  place.done();
  const std::vector<LoadedRun> runs = load_runs(session.store(), {session.store().existing_run(id)});
  print_as(
      common, [&] { return run_json(runs.front().run, runs.front().summary, load_run_context(&session.store())); },
      [&] { return run_text(runs.front(), load_run_context(&session.store())); });
  return exit_status(runs, has_checkpoints);
}

struct LadderOptions {
  RecipeOptions recipe;
  std::string continued;
  bool adopts = false;
  std::string name;
  std::string plan;
  std::vector<std::string> stages;  // texts of rungs
  std::vector<std::string> only;
  std::vector<std::string> without;
  bool all = false;
  std::optional<int> repeats;
  std::vector<std::uint64_t> seeds;  // of the repeats
  bool interleave = false;
  bool is_dry = false;
  std::string shown;  // ladder show
  QuietPatience quiet_patience;
  OnMachine on;
};

constexpr std::size_t most_repeats = 1000;

// The rungs that the options ask for, in order; empty if none.
std::vector<PlannedRung> planned_rungs(const LadderOptions& options) {
  std::vector<PlannedRung> planned;
  if (!options.stages.empty()) planned = parse_rungs(fmt::format("{}", fmt::join(options.stages, ",")));
  if (!options.only.empty()) planned = parse_rungs(fmt::format("{}", fmt::join(options.only, ",")), "--only");
  std::set<std::string> left_out;
  for (const std::string& id : options.without)
    for (const std::string& stage : parse_rung(id, "--without").stages) left_out.insert(stage);
  if (options.stages.empty() && options.only.empty()) {
    if (options.all)
      for (const Stage& stage : all_stages()) planned.push_back({.stages = {stage.id}});
    else if (!left_out.empty())
      planned = usual_rungs();
  }
  std::erase_if(planned, [&](const PlannedRung& rung) { return left_out.contains(stage_text(rung)); });
  if (planned.empty() && !left_out.empty())
    throw UsageError("--without: no rung is left",
                     {.argument = "--without", .value = fmt::format("{}", fmt::join(options.without, ","))});
  return planned;
}

// A request from one of the user's own presets, by its name or its file; values given by hand override it.
LadderRequest saved_request(const LadderOptions& options) {
  const std::filesystem::path own = saved_ladder(options.plan);
  LadderRequest request = request_of(
      read_ladder_file(std::filesystem::exists(own) ? own : std::filesystem::path(options.plan)), "--preset");
  request.base = options.recipe.over(request.base);
  return request;
}

// A request from a preset that ships with the program, in sizes that fit this machine; values given by hand override
// it.
LadderRequest shipped_request(const LadderOptions& options, const DeviceReport& report) {
  const LadderPreset& plan = ladder_preset(options.plan);
  LadderRequest request = preset_ladder(plan, report, [&](const Recipe& base) { return options.recipe.over(base); });
  if (request.base.seq < plan.base.seq || request.base.steps < plan.base.steps || request.base.batch < plan.base.batch)
    say_note(fmt::format(
        "stepladder: {} steps of {} x {} tokens, smaller than the preset's {} of {} x {}, to suit this "
        "machine; --steps, --batch and --seq change them",
        request.base.steps, request.base.batch, request.base.seq, plan.base.steps, plan.base.batch, plan.base.seq));
  return request;
}

bool is_saved(const std::string& plan) {
  std::error_code unreadable;
  return std::filesystem::exists(saved_ladder(plan), unreadable) || std::filesystem::is_regular_file(plan, unreadable);
}

// Throws NotFound if --preset names none.
void check_plan(const std::string& plan) {
  if (is_saved(plan)) return;
  std::vector<std::string> known = saved_ladders();
  for (const LadderPreset& preset : ladder_presets()) known.push_back(preset.name);
  if (std::ranges::find(known, plan) == known.end())
    throw NotFound("--preset: " + unknown_name(plan, known), {.argument = "--preset", .value = plan});
}

LadderRequest preset_request(const LadderOptions& options, const DeviceReport& report) {
  LadderRequest request = is_saved(options.plan) ? saved_request(options) : shipped_request(options, report);
  if (!options.name.empty()) request.name = options.name;
  if (options.repeats && !request.seeds.empty())
    throw RecipeError("--repeats", "the preset lists seeds, which are its repeats; --seeds lists others");
  if (options.repeats) request.repeats = *options.repeats;
  if (!options.seeds.empty()) request.seeds = options.seeds;
  if (!request.seeds.empty()) request.repeats = static_cast<int>(request.seeds.size());
  request.interleave = request.interleave || options.interleave;
  if (options.quiet_patience) request.quiet_patience = options.quiet_patience;
  return request;
}

LadderRequest ladder_request(const LadderOptions& options) {
  return {.name = options.name,
          .base = options.recipe.recipe(),
          .rungs = planned_rungs(options),
          .climb = options.only.empty() ? Climb::together : Climb::alone,
          .repeats = options.seeds.empty() ? options.repeats.value_or(1) : static_cast<int>(options.seeds.size()),
          .seeds = options.seeds,
          .interleave = options.interleave,
          .quiet_patience = options.quiet_patience};
}

int climb(const LadderRequest& request, const CommonOptions& common, TrainingPlace& place, Session& session) {
  refuse_several_processes("a ladder");
  const DeviceReport report = session.probe().get();
  const LaunchedLadder launched = session.launch_ladder(request, report);
  place.begun();
  say_estimate(session, launched.runs, report);
  const bool have_checkpoints = follow(session, launched.runs);
  place.done();
  const std::vector<LoadedRun> runs = load_runs(session.store(), session.store().runs_of(launched.ladder));
  print_ladder({.id = launched.ladder, .name = launched.name}, runs, launched.plan, common, place.database(),
               load_run_context(&session.store()));
  return exit_status(runs, have_checkpoints);
}

int climb(const LadderRequest& request, const CommonOptions& common) {
  TrainingPlace place(common);
  Session session(place.database(), {}, nullptr, place.folders());
  return climb(request, common, place, session);
}

// Trains the remaining runs of a ladder that was killed or stopped.
int continue_ladder(const std::string& wanted, QuietPatience patience, bool adopts, const CommonOptions& common) {
  if (common.journals.empty())
    if (const auto status = continue_on_machine(wanted, common)) return *status;
  TrainingPlace place(common);
  if (!place.is_temporary()) open_existing(common.database);
  place.ingest_journals();
  Session session(place.database(), {}, nullptr, place.folders());
  const Ladder ladder = find_ladder(session.store(), wanted);
  if (adopts) session.adopt(ids_of(session.store().runs_of(ladder.id)));
  const std::vector<RunId> continued = session.continue_ladder(ladder.id, patience);
  place.begun();
  if (continued.empty()) say_note("stepladder: nothing of this ladder is left to train");
  const bool have_checkpoints = follow(session, continued);
  place.done();
  const std::vector<LoadedRun> runs = load_runs(session.store(), session.store().runs_of(ladder.id));
  print_ladder(ladder, runs, {.skipped = skipped_rungs(session.store(), ladder)}, common, place.database(),
               load_run_context(&session.store()));
  // A run that was cut off and has been trained again doesn't count.
  std::vector<LoadedRun> counted;
  for (const LoadedRun& run : runs) {
    const bool is_continued = std::ranges::find(continued, run.run.id) != continued.end();
    const bool was_cut = run.run.status == RunStatus::interrupted || run.run.status == RunStatus::stopped;
    if (is_continued || !was_cut) counted.push_back(run);
  }
  return exit_status(counted, have_checkpoints);
}

int ladder(const LadderOptions& options, const CommonOptions& common) {
  if (options.seeds.size() > most_repeats)
    throw UsageError(
        fmt::format("--seeds: there are {} seeds, and a rung has at most {} runs", options.seeds.size(), most_repeats),
        {.code = "invalid-value", .argument = "--seeds"});
  if (options.on) {
    planned_rungs(options);  // reports mistakes before the machine is asked
    if (options.plan.empty()) return train_on_machine(options.on, common);
    check_plan(options.plan);
    if (!is_saved(options.plan)) return train_on_machine(options.on, common);
    // The machine doesn't have the user's own presets, so it gets this one's values.
    return train_on_machine(options.on, common, words_of(preset_request(options, {})));
  }
  if (!options.continued.empty())
    return continue_ladder(options.continued, options.quiet_patience, options.adopts, common);
  if (!options.plan.empty()) {
    check_plan(options.plan);  // reports mistakes before the database is touched
    if (is_saved(options.plan))
      saved_request(options);
    else
      options.recipe.over(Recipe{});
    if (options.is_dry) {
      const DeviceReport report = probe_machine();
      return print_plan(preset_request(options, report), report, common);
    }
    TrainingPlace place(common);
    Session session(place.database(), {}, nullptr, place.folders());
    return climb(preset_request(options, session.probe().get()), common, place, session);
  }
  const LadderRequest request = ladder_request(options);
  return options.is_dry ? print_plan(request, probe_machine(), common) : climb(request, common);
}

// Sends a request to the processes that train the runs, which check for requests about twice a second.
int ask_owners(const std::vector<std::string>& wanted, RunRequest request, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const std::vector<Run> runs = find_runs(store, wanted);
  for (const Run& run : runs)
    if (is_over(run.status))
      throw UsageError(fmt::format("run {} is {}; only one that is queued or running can be asked to {}", run.id,
                                   to_string(run.status), to_string(request)),
                       {.code = "run-is-over", .argument = "run", .value = std::to_string(run.id)});
  int status = exit_done;
  Json ids = Json::array();
  for (const Run& run : runs) {
    ids.push_back(run.id);
    if (const auto asked = ask_machine(store, run, request)) {
      status = std::max(status, *asked);
      continue;
    }
    store.processes().request(run.id, request);
    if (request == RunRequest::stop && run.source == "launched" && recipe_from_json(run.recipe).save_every == 0)
      say_no_checkpoint(run.id);
  }
  if (common.json) print({{"asked_to", to_string(request)}, {"runs", ids}});
  return status;
}

Subcommand request_command(CLI::App& app, CommonOptions& common, RunRequest request, const char* name,
                           const char* what) {
  auto runs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_with_json(app, common, name, what);
  command->add_option("runs", *runs, runs_help)->required();
  return {command, [runs, request, &common] { return ask_owners(*runs, request, common); }};
}

}  // namespace

Subcommand train_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = add_with_json(app, common, "train", "Train one run");
  options->recipe.add_to(*command);
  command->add_option("--stage,--stages", options->stages, "Stages to apply, separated by commas")->delimiter(',');
  command->add_option("--name", options->name, "Name of the run")->check(new_name());
  CLI::Option* resume = command->add_option("--resume", options->resume,
                                            "Continue this run (number, name or latest) from its newest checkpoint");
  add_when_quiet(*command, options->quiet_patience);
  add_journal(*command, common);
  CLI::Option* fork =
      command->add_option("--fork", options->fork, "Start a new run from a checkpoint: RUN@STEP")->excludes(resume);
  add_adopt(*command, options->adopts);
  add_on_options(*command, options->on, false);
  for (CLI::Option* local : {resume, fork}) local->excludes(command->get_option("--on"));
  return {command, [options, &common] { return train(*options, common); }};
}

Subcommand ladder_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<LadderOptions>();
  CLI::App* command = add_with_json(app, common, "ladder", "Train the baseline and one rung for each stage");
  options->recipe.add_to(*command);
  CLI::Option* stages =
      command->add_option("--stages,--stage", options->stages,
                          "Rungs in order: stages, a name of your own, values: bf16+compile:batch=24,mine:lr=3e-4");
  CLI::Option* only =
      command->add_option("--only", options->only, "Rungs to measure, each alone on the baseline; as for --stages");
  CLI::Option* without = command->add_option("--without", options->without, "Stages to leave out");
  without->delimiter(',');
  only->excludes(stages);
  std::string plans;
  for (const LadderPreset& plan : ladder_presets()) plans += (plans.empty() ? "" : ", ") + plan.name;
  CLI::Option* plan =
      command->add_option("--preset,--plan", options->plan, "Preset: " + plans + ", one of your own, or its file")
          ->excludes(stages)
          ->excludes(only)
          ->excludes(without);
  command->add_flag("--all", options->all, "Include the check and the stages that change training results")
      ->excludes(stages)
      ->excludes(only)
      ->excludes(plan);
  CLI::Option* repeats =
      command->add_option("--repeats", options->repeats, "Runs per rung")->check(between(1, most_repeats));
  command->add_option("--seeds", options->seeds, "Runs per rung, one for each of these seeds, separated by commas")
      ->delimiter(',')
      ->excludes(repeats);
  command->add_flag("--interleave", options->interleave, "Run all repeats in random order");
  command->add_option("--name", options->name, "Name of the ladder")->check(new_name());
  add_on_options(*command, options->on, false);
  command->add_flag("--dry-run", options->is_dry, "Say what would be trained, and how long that may take")
      ->excludes(command->get_option("--on"));
  const std::vector<CLI::Option*> others = command->get_options();
  add_when_quiet(*command, options->quiet_patience);
  add_journal(*command, common);
  CLI::Option* continued =
      command
          ->add_option("--continue", options->continued,
                       "Train the runs of this ladder that were interrupted or stopped (number or name; without "
                       "one, the latest)")
          ->expected(0, 1)
          ->default_str("latest");
  add_adopt(*command, options->adopts);
  for (CLI::Option* other : others)
    if (other != command->get_help_ptr() && !other->check_lname("json") && !other->check_lname("db"))
      continued->excludes(other);
  const CLI::App* show = add_show(*command, options->shown, "A ladder as it was printed at its end");
  return {command, [options, show, &common] {
            if (*show) return show_ladder(options->shown.empty() ? "latest" : options->shown, common);
            return ladder(*options, common);
          }};
}

Subcommand pause_command(CLI::App& app, CommonOptions& common) {
  return request_command(app, common, RunRequest::pause, "pause", "Pause runs before their next step");
}

Subcommand unpause_command(CLI::App& app, CommonOptions& common) {
  return request_command(app, common, RunRequest::resume, "unpause", "Let paused runs continue");
}

Subcommand stop_command(CLI::App& app, CommonOptions& common) {
  return request_command(app, common, RunRequest::stop, "stop", "Stop runs after their current step");
}

}  // namespace stepladder
