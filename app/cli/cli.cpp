#include "app/cli/cli.h"

#include <iostream>
#include <memory>

#include "app/cli/compare_command.h"
#include "app/cli/export_command.h"
#include "app/cli/find_run.h"
#include "app/cli/import_command.h"
#include "app/cli/mfu_command.h"
#include "app/cli/operators_command.h"
#include "app/cli/probe_command.h"
#include "app/cli/profile_command.h"
#include "app/cli/run_commands.h"
#include "app/cli/subcommand.h"
#include "app/cli/training_commands.h"
#include "app/cli/watch_command.h"
#include "app/cli/worker.h"
#include "app/environment.h"
#include "app/run_filter.h"
#include "engine/engine.h"
#include "engine/nearest.h"
#include "engine/processes/worker_processes.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

// What this machine has, without a session.
DeviceReport probe_machine() {
  return Engine([](const RunEvent&) {}).probe().get();
}

int list_stages(const CommonOptions& common) {
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
  if (common.json) {
    print(stages);
  } else {
    std::cout << table(rows, {false, false, false, false});
  }
  return exit_done;
}

Subcommand stages_command(CLI::App& app, CommonOptions& common) {
  return {add_with_json(app, common, "stages", "The stages that this build and device can do"),
          [&common] { return list_stages(common); }};
}

std::vector<std::string> importer_ids() {
  std::vector<std::string> ids;
  for (const Importer& importer : all_importers()) ids.push_back(importer.id);
  return ids;
}

// What the user knows of a log and the log may not say.
void add_import_options(CLI::App& command, ImportOptions& options) {
  command.add_option("--tokens-per-step", options.tokens_per_step, "Batch x sequence x accumulated batches x devices")
      ->transform(positive_count());
  command.add_option("--params", options.params, "Parameters of the model")->transform(positive_count());
  command.add_option("--gpu", options.hardware, "What it ran on");
}

Subcommand import_command(CLI::App& app, CommonOptions& common) {
  auto request = std::make_shared<ImportRequest>();
  CLI::App* command = add_with_json(app, common, "import", "Take runs from the logs and tables of other programs");
  command->add_option("paths", request->paths, "Files, folders, or - for standard input")->required();
  command->add_option("--as", request->options.format, "The format, where it is not to be recognised by content")
      ->check(CLI::IsMember(importer_ids()));
  add_import_options(*command, request->options);
  command->add_flag("--flat", request->options.flat, "Take the files of a folder for rungs, not repeats");
  return {command, [request, &common] {
            request->database = common.database;
            request->json = common.json;
            request->interrupted = interrupted;
            return import_paths(*request);
          }};
}

Subcommand watch_command(CLI::App& app, CommonOptions& common) {
  auto request = std::make_shared<WatchRequest>();
  CLI::App* command =
      app.add_subcommand("watch", "Run a program (or read standard input) and keep the steps that it prints");
  command->add_option("command", request->command, "The program and its arguments, after --");
  command->add_option("--name", request->name, "What to call the run");
  command->add_option("--follow", request->follow, "Follow a growing file until interrupted");
  add_import_options(*command, request->options);
  return {command, [request, &common] {
            if (!request->follow.empty() && !request->command.empty())
              throw UsageError("--follow and a command are two things to watch; give one");
            request->database = common.database;
            return watch(*request);
          }};
}

int mfu(bool published, const MfuQuestion& question, const CommonOptions& common) {
  if (published) {
    const std::vector<PublishedRow> rows = read_published(assets_folder() / "mosaic-mfu.csv");
    if (common.json) {
      print(published_json(rows));
    } else {
      std::cout << published_table(rows);
    }
    return exit_done;
  }
  const MfuAnswer answer = answer_mfu(question, HardwareTable::load(assets_folder()));
  if (common.json) {
    print(mfu_json(answer));
  } else {
    std::cout << mfu_text(answer);
  }
  return exit_done;
}

Subcommand mfu_command(CLI::App& app, CommonOptions& common) {
  auto published = std::make_shared<bool>(false);
  auto question = std::make_shared<MfuQuestion>();
  CLI::App* command =
      add_with_json(app, common, "mfu", "Model FLOP utilisation by every convention, or MosaicML's published tables");
  question->add_to(*command);
  const std::vector<CLI::Option*> others = command->get_options();
  CLI::Option* tables = command->add_flag("--published", *published, "The published tables, recomputed");
  for (CLI::Option* other : others)
    if (other->get_name() != "--help" && other->get_name() != "--json") tables->excludes(other);
  return {command, [published, question, &common] { return mfu(*published, *question, common); }};
}

Subcommand export_command(CLI::App& app, CommonOptions& common) {
  auto request = std::make_shared<ExportRequest>();
  CLI::App* command =
      app.add_subcommand("export", "Write figures, tables, a report, a trace, or a checkpoint's weights to a file");
  request->add_to(*command);
  return {command, [request, &common] {
            request->database = common.database;
            return export_runs(*request);
          }};
}

// Every page of the file, read from beginning to end.
int check_database(const CommonOptions& common) {
  if (!std::filesystem::exists(common.database)) open_existing(common.database);  // which throws the sentence for it
  const std::string file = common.database.string();
  std::string found, sentence;
  try {
    found = open_existing(common.database).integrity_check();
    sentence = file + (found == "ok" ? " is sound" : " is damaged: " + found);
  } catch (const StorageError& error) {
    sentence = found = error.what();  // damaged where even opening reads, or no project at all
  }
  const bool sound = found == "ok";
  if (common.json) {
    print({{"database", file}, {"sound", sound}, {"damage", sound ? Json() : Json(found)}});
  } else {
    std::cout << sentence << "\n";
  }
  return sound ? exit_done : exit_failed;
}

int doctor(bool probe, const CommonOptions& common) {
  DeviceReport report = describe_cpu();
  std::string problem;
  try {
    report = probe_machine();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  Json json = doctor_json(report, common.database);
  std::string text = doctor_text(report, common.database);
  if (probe && problem.empty()) {
    std::cerr << "stepladder: probing for some ten seconds; what else is busy meanwhile makes the figures too low\n";
    try {
      const Probe found = probe_peak(HardwareTable::load(assets_folder()), interrupted);
      json["probe"] = probe_json(found);
      text += "\n" + probe_text(found);
    } catch (const std::exception& error) {
      if (interrupted()) return complain(error, exit_interrupted);
      throw;
    }
  }
  if (common.json) {
    print(json);
  } else {
    std::cout << text;
  }
  if (problem.empty()) return exit_done;
  std::cerr << "stepladder: " << problem << "\n";
  return exit_failed;
}

Subcommand doctor_command(CLI::App& app, CommonOptions& common) {
  auto probe = std::make_shared<bool>(false);
  auto database = std::make_shared<bool>(false);
  CLI::App* command = add_with_json(app, common, "doctor", "What this machine has");
  command->add_flag("--database", *database, "Instead, read the whole database and say whether it is sound");
  command->add_flag("--probe", *probe,
                    "Measure what it can do at best, and keep that as the peak that runs are held against");
  return {command, [probe, database, &common] { return *database ? check_database(common) : doctor(*probe, common); }};
}

Subcommand worker_processes_command(CLI::App& app) {
  return {app.add_subcommand(worker_command, "")->group(""), run_worker};
}

struct ScreenshotOptions {
  ScreenshotRequest request;
  std::string size = "1600x900";
  std::string theme = "dark";
};

int screenshot(ScreenshotOptions& options, const Desktop& desktop, const CommonOptions& common) {
  if (!desktop.screenshot) throw UsageError("this build has no desktop, so there is nothing to take a picture of");
  ScreenshotRequest& request = options.request;
  char end = 0;
  if (std::sscanf(options.size.c_str(), "%dx%d%c", &request.width, &request.height, &end) != 2 || request.width < 320 ||
      request.height < 240 || request.width > 8192 || request.height > 8192) {
    throw UsageError("--size: '" + options.size + "' is not WIDTHxHEIGHT between 320x240 and 8192x8192");
  }
  request.dark = options.theme == "dark";
  request.database = common.database;
  keep_off_database(request.out, request.database);
  return desktop.screenshot(request);
}

Subcommand screenshot_command(CLI::App& app, CommonOptions& common, const Desktop& desktop) {
  auto options = std::make_shared<ScreenshotOptions>();
  CLI::App* command = app.add_subcommand("screenshot", "A picture of a view, with or without a display");
  command
      ->add_option("--view", options->request.view,
                   "launch, live, ladder, compare, history, run, mfu, import or advisor")
      ->required();
  command->add_option("--out", options->request.out, "The PNG file to write")->required();
  command->add_option("--size", options->size, "Pixels, 1600x900 unless given");
  command->add_option("--scale", options->request.scale, "Size of text and marks")->check(between(0.5, 4));
  command->add_option("--theme", options->theme, "dark or light")->check(CLI::IsMember({"dark", "light"}));
  return {command, [options, desktop, &common] { return screenshot(*options, desktop, common); }};
}

// What stands where a command is expected, or is left over: the file of a project, or a mistake.
void check_project(const std::string& project, const CLI::App& app) {
  if (project.empty()) return;
  if (!app.get_subcommands().empty())
    throw UsageError("'" + project + "' was not expected; `stepladder " + app.get_subcommands().front()->get_name() +
                     " --help` says what is");
  if (project.ends_with(".stepladder")) {
    if (!std::filesystem::exists(project)) throw UsageError(project + " does not exist");
    return;
  }
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  const std::string meant = nearest_name(project, known);
  throw UsageError("'" + project + "' is no command" +
                   (meant.empty() ? "; `stepladder --help` lists them" : "; did you mean " + meant + "?"));
}

// CLI11's sentence, as ours are, and where to read on.
std::string usage_text(const CLI::App* app, const CLI::Error& error) {
  const auto given = app->get_subcommands();
  return std::string("stepladder: ") + error.what() + "; `stepladder " +
         (given.empty() ? "" : given.front()->get_name() + " ") + "--help` says what there is\n";
}

int dispatch(int argc, char** argv, const Desktop& desktop) {
  std::string database;
  CLI::App app("Stepladder: what did each step buy, is the number true, did the loss stay the same?", "stepladder");
  app.set_version_flag("--version", std::string("stepladder ") + STEPLADDER_VERSION);
  app.add_option("--db", database, "The database (STEPLADDER_DB, else stepladder.db in the user's data folder)");
  std::string project;
  app.add_option("project", project, "A project to open: FILE.stepladder, as --db FILE.stepladder");
  app.failure_message(usage_text);
  app.require_subcommand(0, 1);
  app.fallthrough();

  CommonOptions common;
  const std::vector<Subcommand> commands = {
      train_command(app, common),
      ladder_command(app, common),
      stages_command(app, common),
      import_command(app, common),
      watch_command(app, common),
      runs_command(app, common),
      show_command(app, common),
      bin_command(app, common),
      request_command(app, common, RunRequest::pause, "Hold a run before its next step"),
      request_command(app, common, RunRequest::resume, "Let a run that was paused go on"),
      request_command(app, common, RunRequest::stop, "End a run after its step"),
      compare_command(app, common),
      operators_command(app, common),
      check_command(app, common),
      mfu_command(app, common),
      export_command(app, common),
      profile_command(app, common),
      doctor_command(app, common),
      worker_processes_command(app),
      screenshot_command(app, common, desktop),
  };
  // Only now: a command would inherit it.
  app.footer("Without a command the desktop opens, or, where there is no display, the quick ladder runs here.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  check_project(project, app);
  if (database.empty()) database = project;
  common.database = database.empty() ? default_database_file() : std::filesystem::path(database);
  for (const Subcommand& command : commands) {
    if (*command.options) return command.run();
  }
  if (desktop.open && display_is_there()) return desktop.open(common.database);
  return quick_ladder(common);
}

}  // namespace

int run_command_line(int argc, char** argv, const Desktop& desktop) {
  open_standard_streams();
  keep_workers_from_spinning();
  remember_command_line(argc, argv);
  catch_signals();
  try {
    return close_output(dispatch(argc, argv, desktop));
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
