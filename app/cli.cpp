#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <optional>

#include "app/environment.h"
#include "app/progress.h"
#include "app/recipe_options.h"
#include "app/report.h"
#include "app/run_filter.h"
#include "app/session.h"
#include "engine/tokens.h"

namespace stepladder {
namespace {

std::atomic<int> interrupts{0};  // Ctrl-C and termination, counted; the second one ends the process at once

void note_interrupt(int signal) {
  if (++interrupts > 1) std::_Exit(128 + signal);
}

void catch_interrupts() {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
}

struct Options {
  std::filesystem::path database;
  bool json = false;
  RecipeOptions recipe;
  std::string name;
  std::vector<std::string> stages;
  int repeats = 1;
  bool interleave = false;
  std::string filter;
  std::string run;
  std::vector<std::string> runs;
  bool steps = false;
  ScreenshotRequest screenshot;
  std::string size = "1600x900";
  std::string theme = "dark";
};

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

// A run by its number or, where just one has it, its name.
Run find_run(RunStore& store, const std::string& wanted) {
  std::vector<Run> named;
  for (Run& run : store.runs()) {
    if (std::to_string(run.id) == wanted) return run;
    if (run.name == wanted) named.push_back(std::move(run));
  }
  if (named.empty()) throw UsageError("there is no run " + wanted + "; `stepladder runs` lists them");
  if (named.size() > 1)
    throw UsageError(std::to_string(named.size()) + " runs are called '" + wanted + "'; give a number");
  return named.front();
}

LoadedRun load_run(RunStore& store, const std::string& wanted) {
  return std::move(load_runs(store, {find_run(store, wanted)}).front());
}

// For the commands that only read. A file that is not there yet is not made; runs whose process died are closed, where
// the file may be written.
std::optional<RunStore> open_to_read(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    RunStore store = RunStore::open(file);
    store.close_dead_runs();
    return store;
  } catch (const StorageError&) {  // read-only, or broken: then this says why
    return RunStore::open(file, RunStore::Mode::read_only);
  }
}

RunStore open_existing(const std::filesystem::path& file) {
  auto store = open_to_read(file);
  if (!store) throw StorageError(file.string() + " does not exist: no run was made yet");
  return std::move(*store);
}

// Shows events until every one of `runs` has ended; Ctrl-C stops them.
void follow(Session& session, const std::vector<RunId>& runs) {
  std::vector<Run> rows;
  for (const RunId id : runs) rows.push_back(*session.store().run(id));
  Progress progress(std::move(rows));
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

int train(const Options& options) {
  const Recipe recipe = options.recipe.recipe();
  for (const std::string& stage : options.stages) stage_by_id(stage);
  Session session(options.database);
  const RunId id = session.launch_run(options.name, recipe, options.stages, session.probe().get());
  follow(session, {id});
  const std::vector<LoadedRun> runs = load_runs(session.store(), {*session.store().run(id)});
  if (options.json) {
    print(run_json(runs.front().run, runs.front().summary));
  } else {
    std::cout << run_text(runs.front());
  }
  return exit_status(runs);
}

int ladder(const LadderRequest& request, const Options& options) {
  for (const std::string& stage : request.stages) stage_by_id(stage);
  Session session(options.database);
  const LaunchedLadder launched = session.launch_ladder(request, session.probe().get());
  follow(session, launched.runs);
  const std::vector<LoadedRun> runs = load_runs(session.store(), session.store().runs_of(launched.ladder));
  if (options.json) {
    print(ladder_json({.id = launched.ladder, .name = default_name(request.base)}, runs, launched.plan.skipped,
                      options.database));
  } else {
    std::cout << ladder_table(runs, launched.plan.skipped);
  }
  return exit_status(runs);
}

// What `./run` does where no window can open: a ladder of a few seconds on the text that comes with the program.
int quick_ladder(const Options& options) {
  std::cerr << "stepladder: no display, so the desktop cannot open; running the quick ladder here instead\n";
  LadderRequest request;
  apply_preset(request.base, "nano");
  const std::filesystem::path text = assets_folder() / "tinyshakespeare.txt";
  if (std::filesystem::exists(text)) request.base.data = text.string();
  request.base.steps = 60;
  request.name = "quick ladder";
  return ladder(request, options);
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
    const std::string reason = stage.unavailable(report, device);
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
  if (auto store = open_to_read(options.database)) {
    for (RunAndSummary& run : store->runs_with_summaries()) {
      if (filter.accepts(run.run, run.summary)) runs.push_back(std::move(run));
    }
  }
  if (options.json) {
    Json list = Json::array();
    for (const RunAndSummary& run : runs) list.push_back(run_json(run.run, run.summary));
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
  const LoadedRun run = load_run(store, options.run);
  if (options.json) {
    Json json = run_json(run.run, run.summary);
    if (options.steps) json["data"] = steps_json(run.series);
    print(json);
    return exit_done;
  }
  std::cout << run_text(run);
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

int compare(const Options& options) {
  RunStore store = open_existing(options.database);
  const LoadedRun base = load_run(store, options.run);
  std::vector<LoadedRun> runs;
  for (const std::string& wanted : options.runs) runs.push_back(load_run(store, wanted));
  if (options.json) {
    print(compare_json(base, runs));
  } else {
    std::cout << compare_table(base, runs);
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
  if (options.json) {
    print(doctor_json(report, options.database));
  } else {
    std::cout << doctor_text(report, options.database);
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

int dispatch(int argc, char** argv, const Desktop& desktop) {
  Options options;
  std::string database;
  CLI::App app("Stepladder: what did each step buy, is the number true, did the loss stay the same?", "stepladder");
  app.set_version_flag("--version", std::string("stepladder ") + STEPLADDER_VERSION);
  app.add_option("--db", database, "The database (STEPLADDER_DB, else stepladder.db in the user's data folder)");
  app.footer("Without a command the desktop opens, or, where there is no display, the quick ladder runs here.");
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

  CLI::App* ladder_command = command("ladder", "Train the baseline and one rung for each stage");
  options.recipe.add_to(*ladder_command);
  ladder_command->add_option("--stages", options.stages, "Stages, in order (all that this device can do unless given)")
      ->delimiter(',');
  ladder_command->add_option("--repeats", options.repeats, "Runs of each rung")->check(CLI::Range(1, 1000));
  ladder_command->add_flag("--interleave", options.interleave, "Run all repeats in random order");
  ladder_command->add_option("--name", options.name, "What to call the ladder");

  CLI::App* stages_command = command("stages", "The stages that this build and device can do");
  CLI::App* runs_command = command("runs", "The runs in the database");
  runs_command->add_option("--filter", options.filter, "Words and conditions: nano status=finished tokens_per_s>20000");
  CLI::App* show_command = command("show", "One run");
  show_command->add_option("run", options.run, "Its number or name")->required();
  show_command->add_flag("--steps", options.steps, "Every step too");
  CLI::App* compare_command = command("compare", "Runs against a base run");
  compare_command->add_option("base", options.run, "The run to compare with")->required();
  compare_command->add_option("runs", options.runs, "The runs to compare")->required();
  CLI::App* doctor_command = command("doctor", "What this machine has");
  CLI::App* screenshot_command = command("screenshot", "A picture of a view, with or without a display");
  screenshot_command->add_option("--view", options.screenshot.view, "launch, live, ladder or history")->required();
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
  options.database = database.empty() ? default_database_file() : std::filesystem::path(database);

  if (*train_command) return train(options);
  if (*ladder_command) {
    return ladder({options.name, options.recipe.recipe(), options.stages, options.repeats, options.interleave},
                  options);
  }
  if (*stages_command) return list_stages(options);
  if (*runs_command) return list_runs(options);
  if (*show_command) return show(options);
  if (*compare_command) return compare(options);
  if (*doctor_command) return doctor(options);
  if (*screenshot_command) return screenshot(options, desktop);
  if (desktop.open && display_is_there()) return desktop.open(options.database);
  return quick_ladder(options);
}

int complain(const std::exception& error, int status) {
  std::cerr << "stepladder: " << error.what() << "\n";
  return status;
}

}  // namespace

int run_command_line(int argc, char** argv, const Desktop& desktop) {
  keep_workers_from_spinning();
  remember_command_line(argc, argv);
  catch_interrupts();
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
