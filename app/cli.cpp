#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "app/bin.h"
#include "app/check_command.h"
#include "app/environment.h"
#include "app/export_command.h"
#include "app/find_run.h"
#include "app/import_command.h"
#include "app/mfu_command.h"
#include "app/probe_command.h"
#include "app/progress.h"
#include "app/ready_ladder.h"
#include "app/recipe_options.h"
#include "app/report.h"
#include "app/run_filter.h"
#include "app/session.h"
#include "app/suspend.h"
#include "app/watch_command.h"
#include "app/worker.h"
#include "engine/ready_plans.h"
#include "engine/rendezvous.h"
#include "engine/worker_processes.h"

namespace stepladder {
namespace {

std::atomic<int> interrupts{0};  // Ctrl-C and termination, counted; the second one ends the process at once

void note_interrupt(int signal) {
  if (++interrupts > 1) std::_Exit(128 + signal);
}

void catch_signals() {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  // A process of the same run that dies, or a reader of our output that leaves, is an error to be told, not our end.
  std::signal(SIGPIPE, SIG_IGN);
}

struct Options {
  std::filesystem::path database;
  bool json = false;
  RecipeOptions recipe;
  std::string name;
  std::vector<std::string> stages;
  std::string resume;
  std::string fork;
  std::string plan;
  std::vector<std::string> only;
  std::vector<std::string> without;
  bool all = false;
  int repeats = 1;
  bool interleave = false;
  std::string filter;
  std::string run;
  std::vector<std::string> runs;
  bool steps = false;
  bool empty = false;
  bool console = false;
  CompareRequest compare;
  bool gate = false;
  bool published = false;
  bool probe = false;
  MfuQuestion mfu;
  ScreenshotRequest screenshot;
  std::string size = "1600x900";
  std::string theme = "dark";
  ImportRequest import;
  WatchRequest watch;
  ExportRequest exported;
};

// Of a run that has more, the interval of the median step is told from the last so many.
constexpr std::int64_t enough_steps = 1'000'000;

int complain(const std::exception& error, int status) {
  std::cerr << "stepladder: " << error.what() << "\n";
  return status;
}

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

LoadedRun load_run(RunStore& store, const std::string& wanted) {
  return std::move(load_runs(store, {find_run(store, wanted)}).front());
}

// Shows events until every one of `runs` has ended; Ctrl-C stops them.
void follow(Session& session, const std::vector<RunId>& runs) {
  std::vector<Run> rows;
  for (const RunId id : runs) rows.push_back(*session.store().run(id));
  const bool several_processes =
      std::any_of(rows.begin(), rows.end(), [](const Run& run) { return recipe_from_json(run.recipe).nproc > 1; });
  Progress progress(std::move(rows));
  Suspension suspension(session, runs, several_processes);
  std::size_t ended = 0;
  bool stopping = false;
  while (ended < runs.size()) {
    for (const RunEvent& event : session.wait_and_drain(std::chrono::milliseconds(100))) {
      progress.show(event);
      ended += std::holds_alternative<RunEnded>(event) ? 1 : 0;
    }
    if (interrupts > 0 && !stopping) {
      stopping = true;
      session.stop_all();
    }
    suspension.look();
  }
  session.flush();
  if (const std::string error = session.storage_error(); !error.empty()) throw StorageError(error);
}

int exit_status(const std::vector<LoadedRun>& runs) {
  if (interrupts > 0) return exit_interrupted;
  const bool failed =
      std::any_of(runs.begin(), runs.end(), [](const LoadedRun& run) { return run.run.status != RunStatus::finished; });
  return failed ? exit_failed : exit_done;
}

RunId start_training(Session& session, const Options& options) {
  if (!options.resume.empty()) {
    if (!options.stages.empty()) throw RecipeError("--stage", "changes the run; --fork makes a new one of it");
    const Run run = find_run(session.store(), options.resume);
    session.resume(run.id, options.recipe.over(recipe_from_json(run.recipe)));
    return run.id;
  }
  RunRequested request{.name = options.name, .stages = options.stages};
  if (options.fork.empty()) {
    request.base = options.recipe.recipe();
    if (const auto placement = placement_from_environment()) request.base.nproc = placement->world_size;
  } else {
    const auto [parent, step] = find_fork(session.store(), options.fork);
    request.base = options.recipe.over(recipe_from_json(parent.recipe));
    request.fork_of = parent.id;
    request.fork_step = step;
  }
  return session.launch_run(request, session.probe().get());
}

// One of several processes that a launcher started: all of them have the same command line, and only rank 0 records.
int train_as_rank(const Placement& placement, Recipe recipe, const std::vector<std::string>& stages) {
  for (const std::string& stage : stages) stage_by_id(stage).apply(recipe);
  recipe.nproc = placement.world_size;
  return run_rank(placement, recipe, [] { return interrupts > 0; });
}

int train(const Options& options) {
  for (const std::string& stage : options.stages) stage_by_id(stage);
  if (options.fork.empty()) options.recipe.over(Recipe{});  // says what is wrong before the database is touched
  const auto placement = placement_from_environment();
  if (placement && (!options.resume.empty() || !options.fork.empty())) {
    throw UsageError("a run is resumed or forked by one process, which starts the others itself: --nproc");
  }
  if (placement && placement->rank > 0) return train_as_rank(*placement, options.recipe.recipe(), options.stages);
  Session session(options.database);
  const RunId id = start_training(session, options);
  follow(session, {id});
  const std::vector<LoadedRun> runs = load_runs(session.store(), {*session.store().run(id)});
  if (options.json) {
    print(run_json(runs.front().run, runs.front().summary, load_judge(&session.store())));
  } else {
    std::cout << run_text(runs.front(), load_judge(&session.store()));
  }
  return exit_status(runs);
}

// Another process trains the run; it looks for such requests about twice a second.
int ask_owner(const Options& options, RunRequest request) {
  RunStore store = open_existing(options.database);
  const Run run = find_run(store, options.run);
  if (run.status != RunStatus::queued && run.status != RunStatus::running) {
    throw UsageError("run " + std::to_string(run.id) + " is " + std::string(to_string(run.status)) +
                     "; only one that is queued or running can be asked to " + std::string(to_string(request)));
  }
  store.request(run.id, request);
  return exit_done;
}

int ladder(const LadderRequest& request, const Options& options, Session& session) {
  if (const auto placement = placement_from_environment(); placement && placement->world_size > 1) {
    throw UsageError("a ladder starts its processes itself: give --nproc instead of starting it " +
                     std::to_string(placement->world_size) + " times");
  }
  const LaunchedLadder launched = session.launch_ladder(request, session.probe().get());
  follow(session, launched.runs);
  const std::vector<LoadedRun> runs = load_runs(session.store(), session.store().runs_of(launched.ladder));
  if (options.json) {
    print(ladder_json({.id = launched.ladder, .name = default_name(request.base)}, runs, launched.plan,
                      options.database, load_judge(&session.store())));
  } else {
    std::cout << ladder_table(runs, launched.plan);
  }
  return exit_status(runs);
}

// The rungs asked for, in order; empty where nothing was said.
std::vector<PlannedStage> planned_stages(const Options& options) {
  std::vector<PlannedStage> planned;
  for (const std::string& text : options.only.empty() ? options.stages : options.only) {
    planned.push_back(parse_planned_stage(text));
  }
  std::set<std::string> left_out;
  for (const std::string& id : options.without) left_out.insert(parse_planned_stage(id).stage);
  if (planned.empty() && (options.all || !left_out.empty())) {
    for (const Stage& stage : all_stages()) {
      if (options.all || stage.kind == StageKind::systems_only) planned.push_back({.stage = stage.id});
    }
  }
  std::erase_if(planned, [&](const PlannedStage& stage) { return left_out.contains(stage.stage); });
  return planned;
}

// A ladder that others climbed, in sizes that fit this machine; what was given by hand counts.
LadderRequest ready_request(const Options& options, const DeviceReport& report) {
  const ReadyPlan& plan = ready_plan(options.plan);
  LadderRequest request = ready_ladder(plan, options.recipe.over(plan.base), report);
  if (!options.name.empty()) request.name = options.name;
  request.repeats = options.repeats;
  request.interleave = options.interleave;
  return request;
}

LadderRequest ladder_request(const Options& options) {
  return {.name = options.name,
          .base = options.recipe.recipe(),
          .stages = planned_stages(options),
          .climb = options.only.empty() ? Climb::together : Climb::alone,
          .repeats = options.repeats,
          .interleave = options.interleave};
}

// What `./run` does where no window can open: a ladder of a few seconds on the text that comes with the program.
int quick_ladder(const Options& options) {
  std::cerr << "stepladder: no display, so the desktop cannot open; running the quick ladder here instead\n";
  LadderRequest request;
  apply_preset(request.base, "nano");
  const std::filesystem::path text = assets_folder() / "tinyshakespeare.txt";
  if (std::filesystem::exists(text)) request.base.data = text.string();
  request.base.steps = 60;
  for (const char* id : {"baseline", "bf16", "compile", "flash-attention", "fused-adamw"}) {
    request.stages.push_back({.stage = id});
  }
  request.name = "quick ladder";
  Session session(options.database);
  return ladder(request, options, session);
}

int climb(const Options& options) {
  if (!options.plan.empty()) {
    ready_plan(options.plan);  // says what is wrong before the database is touched
    options.recipe.over(Recipe{});
    Session session(options.database);
    return ladder(ready_request(options, session.probe().get()), options, session);
  }
  const LadderRequest request = ladder_request(options);
  Session session(options.database);
  return ladder(request, options, session);
}

// What this machine has, without a session.
DeviceReport probe_machine() {
  return Engine([](const RunEvent&) {}).probe().get();
}

int list_stages(const Options& options) {
  const DeviceReport report = probe_machine();
  const std::string device = report.resolve("auto");
  Json stages = Json::array();
  std::vector<std::vector<std::string>> rows = {{"stage", "kind", "available", "what it does"}};
  for (const Stage& stage : all_stages()) {
    const std::string reason = stage.unavailable(Recipe{}, report, device);
    stages.push_back(stage_json(stage, reason));
    rows.push_back({stage.id, std::string(to_string(stage.kind)), reason.empty() ? "yes" : "no",
                    reason.empty() ? stage.why : reason});
  }
  if (options.json) {
    print(stages);
  } else {
    std::cout << table(rows, {false, false, false, false});
  }
  return exit_done;
}

int list_runs(const Options& options) {
  const RunFilter filter(options.filter);
  std::vector<RunAndSummary> runs;
  auto store = open_to_read(options.database);
  const Judge judge = load_judge(store ? &*store : nullptr);
  if (store) {
    std::map<RunId, Curation> curations = store->curations();
    for (RunAndSummary& run : store->runs_with_summaries()) {
      if (filter.accepts(run.run, run.summary, judge, curations[run.run.id])) runs.push_back(std::move(run));
    }
  }
  if (options.json) {
    Json list = Json::array();
    for (const RunAndSummary& run : runs) list.push_back(run_json(run.run, run.summary, judge));
    print(list);
  } else if (runs.empty()) {
    std::cerr << "stepladder: no runs"
              << (options.filter.empty() ? " yet; `stepladder ladder` makes some\n" : " match\n");
  } else {
    std::cout << runs_table(runs);
  }
  return exit_done;
}

int show(const Options& options) {
  RunStore store = open_existing(options.database);
  LoadedRun run{.run = find_run(store, options.run)};
  run.summary = store.summary(run.run);
  if (options.steps || (!options.json && run.summary.steps <= enough_steps)) {
    run.series = store.series(run.run.id);
  } else if (!options.json) {
    run.series = store.series(run.run.id, run.summary.last_step - enough_steps + 1, run.summary.last_step);
  }
  if (options.console && !options.json) {
    const std::string printed = store.console(run.run.id, std::numeric_limits<std::size_t>::max());
    if (printed.empty()) std::cerr << "stepladder: nothing that run " << run.run.id << " printed was kept\n";
    std::cout << printed;
    return exit_done;
  }
  if (options.json) {
    Json json = run_json(run.run, run.summary, load_judge(&store));
    json.update(life_cycle_json(store, {run.run, run.summary}));
    if (options.steps) json["data"] = steps_json(run.series);
    print(json);
    return exit_done;
  }
  std::cout << run_text(run, load_judge(&store));
  if (options.steps) {
    std::cout << "\nstep\tloss\tval_loss\tdt_ms\ttokens_per_s\tlr\tgrad_norm\n";
    for (const Json& step : steps_json(run.series)) {
      for (const char* column : {"step", "loss", "val_loss", "dt_ms", "tokens_per_s", "lr", "grad_norm"}) {
        const Json& value = step.at(column);
        std::cout << (column == std::string("step") ? "" : "\t")
                  << (value.is_null()     ? "-"
                      : value.is_string() ? value.get<std::string>()
                                          : value.dump());
      }
      std::cout << "\n";
    }
  }
  return exit_done;
}

// All runs of the run's rung, itself included.
std::vector<LoadedRun> repeats_of(RunStore& store, const LoadedRun& run) {
  if (!run.run.ladder) return {run};
  std::vector<Run> repeats = store.runs_of(*run.run.ladder);
  std::erase_if(repeats, [&](const Run& other) {
    return other.rung != run.run.rung || (other.id != run.run.id && other.status != RunStatus::finished);
  });
  return load_runs(store, repeats);
}

// The gravest of what a gate finds: what cannot be true, then the loss, then the speed.
int gate_status(const std::vector<Comparison>& comparisons) {
  const auto any = [&](auto&& found) { return std::any_of(comparisons.begin(), comparisons.end(), found); };
  if (any([](const Comparison& c) { return is_impossible(c.flags); })) return exit_implausible;
  if (any([](const Comparison& c) {
        return c.loss.verdict == LossVerdict::worse || c.loss.verdict == LossVerdict::diverged;
      }))
    return exit_loss_not_at_parity;
  if (any([](const Comparison& c) { return c.speedup.verdict == Verdict::slower; })) return exit_slower;
  if (any([](const Comparison& c) { return c.speedup.verdict == Verdict::cannot_tell; })) return exit_cannot_tell;
  return exit_done;
}

int compare(const Options& options) {
  RunStore store = open_existing(options.database);
  const LoadedRun base = load_run(store, options.run);
  std::vector<LoadedRun> runs;
  for (const std::string& wanted : options.runs) runs.push_back(load_run(store, wanted));
  std::vector<std::vector<LoadedRun>> repeats{repeats_of(store, base)};
  for (const LoadedRun& run : runs) repeats.push_back(repeats_of(store, run));
  std::vector<RunAndSummary> others;
  if (std::any_of(runs.begin(), runs.end(),
                  [&](const LoadedRun& run) { return run.run.tokens_per_step != base.run.tokens_per_step; }))
    others = store.runs_with_summaries();
  const std::vector<Comparison> comparisons =
      compare_runs(base, runs, repeats, options.compare, load_judge(&store), others);
  if (options.json) {
    print(compare_json(base, comparisons));
  } else {
    std::cout << compare_table(base, comparisons);
  }
  return options.gate ? gate_status(comparisons) : exit_done;
}

int check(const Options& options) {
  std::vector<RunAndSummary> runs;
  auto store = open_to_read(options.database);
  if (!options.runs.empty()) {
    if (!store) throw StorageError(options.database.string() + " does not exist: no run was made yet");
    for (const std::string& wanted : options.runs) {
      const Run run = find_run(*store, wanted);
      runs.push_back({run, store->summary(run)});
    }
  } else if (store) {
    runs = store->runs_with_summaries();
  }
  const std::vector<CheckedRun> checked = check_runs(runs, load_judge(store ? &*store : nullptr));
  if (options.json) {
    print(check_json(checked));
  } else {
    std::cout << check_text(checked);
  }
  const bool impossible =
      std::any_of(checked.begin(), checked.end(), [](const CheckedRun& run) { return is_impossible(run.flags); });
  return impossible && !options.runs.empty() ? exit_implausible : exit_done;
}

int mfu(const Options& options) {
  if (options.published) {
    const std::vector<PublishedRow> rows = read_published(assets_folder() / "mosaic-mfu.csv");
    if (options.json) {
      print(published_json(rows));
    } else {
      std::cout << published_table(rows);
    }
    return exit_done;
  }
  const MfuAnswer answer = answer_mfu(options.mfu, HardwareTable::load(assets_folder()));
  if (options.json) {
    print(mfu_json(answer));
  } else {
    std::cout << mfu_text(answer);
  }
  return exit_done;
}

int doctor(const Options& options) {
  DeviceReport report = describe_cpu();
  std::string problem;
  try {
    report = probe_machine();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  Json json = doctor_json(report, options.database);
  std::string text = doctor_text(report, options.database);
  if (options.probe && problem.empty()) {
    std::cerr << "stepladder: probing for some ten seconds; what else is busy meanwhile makes the figures too low\n";
    try {
      const Probe probe = probe_ceiling(HardwareTable::load(assets_folder()), [] { return interrupts > 0; });
      json["probe"] = probe_json(probe);
      text += "\n" + probe_text(probe);
    } catch (const std::exception& error) {
      if (interrupts > 0) return complain(error, exit_interrupted);
      throw;
    }
  }
  if (options.json) {
    print(json);
  } else {
    std::cout << text;
  }
  if (problem.empty()) return exit_done;
  std::cerr << "stepladder: " << problem << "\n";
  return exit_failed;
}

int screenshot(Options& options, const Desktop& desktop) {
  if (!desktop.screenshot) throw UsageError("this build has no desktop, so there is nothing to take a picture of");
  ScreenshotRequest& request = options.screenshot;
  char end = 0;
  if (std::sscanf(options.size.c_str(), "%dx%d%c", &request.width, &request.height, &end) != 2 || request.width < 320 ||
      request.height < 240 || request.width > 8192 || request.height > 8192) {
    throw UsageError("--size: '" + options.size + "' is not WIDTHxHEIGHT between 320x240 and 8192x8192");
  }
  request.dark = options.theme == "dark";
  request.database = options.database;
  return desktop.screenshot(request);
}

std::vector<std::string> importer_ids() {
  std::vector<std::string> ids;
  for (const Importer& importer : all_importers()) ids.push_back(importer.id);
  return ids;
}

bool display_is_there() {
#ifdef __linux__
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
#else
  return true;
#endif
}

// What the user knows of a log and the log may not say.
void add_import_options(CLI::App& command, ImportOptions& options) {
  command.add_option("--as", options.format, "The format, where it is not to be recognised by content")
      ->check(CLI::IsMember(importer_ids()));
  command.add_option("--tokens-per-step", options.tokens_per_step, "Batch x sequence x accumulated batches x devices")
      ->check(CLI::PositiveNumber);
  command.add_option("--params", options.params, "Parameters of the model")->check(CLI::PositiveNumber);
  command.add_option("--gpu", options.hardware, "What it ran on");
}

int dispatch(int argc, char** argv, const Desktop& desktop) {
  Options options;
  std::string database;
  CLI::App app("Stepladder: what did each step buy, is the number true, did the loss stay the same?", "stepladder");
  app.set_version_flag("--version", std::string("stepladder ") + STEPLADDER_VERSION);
  app.add_option("--db", database, "The database (STEPLADDER_DB, else stepladder.db in the user's data folder)");
  app.footer("Without a command the desktop opens, or, where there is no display, the quick ladder runs here.");
  std::string project;
  app.add_option("project", project, "A project to open: FILE.stepladder, as --db FILE.stepladder")
      ->check(CLI::ExistingFile & CLI::Validator(
                                      [](std::string& file) {
                                        return file.ends_with(".stepladder") ? ""
                                                                             : "is no command, and no .stepladder file";
                                      },
                                      "FILE.stepladder"));
  app.require_subcommand(0, 1);
  app.fallthrough();

  const auto command = [&](const char* name, const char* what) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->add_flag("--json", options.json, "Print JSON");
    return sub;
  };
  CLI::App* train_command = command("train", "Train one run");
  options.recipe.add_to(*train_command);
  train_command->add_option("--stage", options.stages, "A stage to apply; several may be given")->delimiter(',');
  train_command->add_option("--name", options.name, "What to call the run");
  CLI::Option* resume_option =
      train_command->add_option("--resume", options.resume, "Go on with a run from its newest checkpoint");
  train_command->add_option("--fork", options.fork, "A new run from a checkpoint of another: RUN@STEP")
      ->excludes(resume_option);

  CLI::App* ladder_command = command("ladder", "Train the baseline and one rung for each stage");
  options.recipe.add_to(*ladder_command);
  CLI::Option* stages_option = ladder_command->add_option(
      "--stages", options.stages, "Stages, in order; values that change with one after it: bf16:batch=24");
  CLI::Option* only_option =
      ladder_command->add_option("--only", options.only, "Stages, each on the baseline alone instead of together");
  CLI::Option* without_option = ladder_command->add_option("--without", options.without, "Stages to leave out");
  for (CLI::Option* list : {stages_option, only_option, without_option}) list->delimiter(',');
  only_option->excludes(stages_option);
  std::string plans;
  for (const ReadyPlan& plan : ready_plans()) plans += (plans.empty() ? "" : ", ") + plan.name;
  CLI::Option* plan_option =
      ladder_command->add_option("--plan", options.plan, "A ladder that others climbed: " + plans)
          ->excludes(stages_option)
          ->excludes(only_option)
          ->excludes(without_option);
  ladder_command->add_flag("--all", options.all, "Also the check and the stages that change the maths")
      ->excludes(stages_option)
      ->excludes(only_option)
      ->excludes(plan_option);
  ladder_command->add_option("--repeats", options.repeats, "Runs of each rung")->check(CLI::Range(1, 1000));
  ladder_command->add_flag("--interleave", options.interleave, "Run all repeats in random order");
  ladder_command->add_option("--name", options.name, "What to call the ladder");

  CLI::App* stages_command = command("stages", "The stages that this build and device can do");
  CLI::App* import_command = command("import", "Take runs from the logs and tables of other programs");
  import_command->add_option("paths", options.import.paths, "Files, folders, or - for standard input")->required();
  add_import_options(*import_command, options.import.options);
  import_command->add_flag("--flat", options.import.options.flat, "Take the files of a folder for rungs, not repeats");
  CLI::App* watch_command =
      command("watch", "Run a program (or read standard input) and keep the steps that it prints");
  watch_command->add_option("command", options.watch.command, "The program and its arguments, after --");
  watch_command->add_option("--name", options.watch.name, "What to call the run");
  watch_command->add_option("--follow", options.watch.follow, "Follow a growing file until interrupted");
  add_import_options(*watch_command, options.watch.options);
  CLI::App* runs_command = command("runs", "The runs in the database");
  runs_command->add_option("--filter", options.filter, "Words and conditions: nano status=finished tokens_per_s>20000");
  CLI::App* show_command = command("show", "One run");
  show_command->add_option("run", options.run, "Its number or name")->required();
  show_command->add_flag("--steps", options.steps, "Every step too");
  show_command->add_flag("--console", options.console, "Instead, what its program printed (watch), as it was printed");
  CLI::App* bin_command =
      command("bin", "The runs that were deleted: for 30 days they can be taken back in the desktop");
  bin_command->add_flag("--empty", options.empty, "Take them out for good, with their checkpoints");
  struct Verb {
    CLI::App* command;
    RunRequest request;
  };
  std::vector<Verb> verbs;
  for (const auto& [request, what] : {std::pair(RunRequest::pause, "Hold a run before its next step"),
                                      std::pair(RunRequest::resume, "Let a run that was paused go on"),
                                      std::pair(RunRequest::stop, "End a run after its step")}) {
    verbs.push_back({app.add_subcommand(std::string(to_string(request)), what), request});
    verbs.back().command->add_option("run", options.run, "Its number or name")->required();
  }
  CLI::App* compare_command = command("compare", "Runs against a base run");
  compare_command->add_option("base", options.run, "The run to compare with")->required();
  compare_command->add_option("runs", options.runs, "The runs to compare")->required();
  compare_command->add_option("--noise-floor", options.compare.noise_floor, "Differences below this are none: 0.01")
      ->check(CLI::Range(0.0, 1.0));
  compare_command->add_option("--target-loss", options.compare.target_loss,
                              "When each run reached it (the base's last loss unless given)");
  compare_command->add_flag("--gate", options.gate,
                            "Exit with 12 implausible, 13 loss not at parity, 10 slower, 11 cannot tell, or 0");
  CLI::App* check_command =
      command("check", "Reasons to distrust a run's numbers; exit 12 where a named one is impossible");
  check_command->add_option("runs", options.runs, "The runs to check (all unless given)");
  CLI::App* mfu_command = command("mfu", "Model FLOP utilisation by every convention, or MosaicML's published tables");
  mfu_command->add_flag("--published", options.published, "The published tables, recomputed");
  options.mfu.add_to(*mfu_command);
  CLI::App* export_command =
      app.add_subcommand("export", "Write figures, tables, a report, a trace, or a checkpoint's weights to a file");
  options.exported.add_to(*export_command);
  CLI::App* doctor_command = command("doctor", "What this machine has");
  doctor_command->add_flag("--probe", options.probe,
                           "Measure what it can do at best, and keep that as the peak that runs are held against");
  CLI::App* worker = app.add_subcommand(worker_command, "")->group("");
  CLI::App* screenshot_command = command("screenshot", "A picture of a view, with or without a display");
  screenshot_command
      ->add_option("--view", options.screenshot.view,
                   "launch, live, ladder, compare, history, run, mfu, import or advisor")
      ->required();
  screenshot_command->add_option("--out", options.screenshot.out, "The PNG file to write")->required();
  screenshot_command->add_option("--size", options.size, "Pixels, 1600x900 unless given");
  screenshot_command->add_option("--scale", options.screenshot.scale, "Size of text and marks")
      ->check(CLI::Range(0.5, 4.0));
  screenshot_command->add_option("--theme", options.theme, "dark or light")->check(CLI::IsMember({"dark", "light"}));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  if (database.empty()) database = project;
  options.database = database.empty() ? default_database_file() : std::filesystem::path(database);

  if (*train_command) return train(options);
  if (*worker) return run_worker();
  if (*ladder_command) return climb(options);
  if (*stages_command) return list_stages(options);
  if (*import_command) {
    options.import.database = options.database;
    options.import.json = options.json;
    options.import.interrupted = [] { return interrupts > 0; };
    return import_paths(options.import);
  }
  if (*watch_command) {
    if (!options.watch.follow.empty() && !options.watch.command.empty())
      throw UsageError("--follow and a command are two things to watch; give one");
    options.watch.database = options.database;
    return watch(options.watch);
  }
  if (*runs_command) return list_runs(options);
  if (*show_command) return show(options);
  if (*bin_command) return show_bin(options.database, options.empty, options.json);
  for (const auto& [verb, request] : verbs) {
    if (*verb) return ask_owner(options, request);
  }
  if (*compare_command) return compare(options);
  if (*export_command) {
    options.exported.database = options.database;
    return export_runs(options.exported);
  }
  if (*check_command) return check(options);
  if (*mfu_command) return mfu(options);
  if (*doctor_command) return doctor(options);
  if (*screenshot_command) return screenshot(options, desktop);
  if (desktop.open && display_is_there()) return desktop.open(options.database);
  return quick_ladder(options);
}

}  // namespace

int run_command_line(int argc, char** argv, const Desktop& desktop) {
  keep_workers_from_spinning();
  remember_command_line(argc, argv);
  catch_signals();
  try {
    return dispatch(argc, argv, desktop);
  } catch (const RecipeError& error) {
    return complain(error, exit_usage);
  } catch (const FilterError& error) {
    return complain(error, exit_usage);
  } catch (const UsageError& error) {
    return complain(error, exit_usage);
  } catch (const std::exception& error) {  // StorageError, DataError, LibTorch that does not load
    return complain(error, exit_failed);
  }
}

}  // namespace stepladder
