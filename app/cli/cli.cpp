// Builds the parser from all commands, runs the one that was named, and turns exceptions into a sentence and an exit
// status. Without a command it opens the window or, without a display, prints the help. A new command gets a line in
// `dispatch`.
#include "app/cli/cli.h"

#include <algorithm>
#include <iostream>
#include <string_view>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/runs/run_filter.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "engine/engine.h"
#include "engine/nearest.h"
#include "engine/processes/worker_processes.h"
#include "storage/analysis/hardware.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

// Checks the argument that isn't a command: either a project's file, or a mistake.
void check_project(const std::string& project, const CLI::App& app) {
  if (project.empty()) return;
  if (!app.get_subcommands().empty())
    throw UsageError("'" + project + "' was not expected; `stepladder " + app.get_subcommands().front()->get_name() +
                     " --help` lists the options");
  if (project.ends_with(".stepladder")) {
    if (!std::filesystem::exists(project)) throw UsageError(project + " does not exist");
    return;
  }
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  const std::string meant = nearest_name(project, known);
  throw UsageError("'" + project + "' is not a command" +
                   (meant.empty() ? "; `stepladder --help` lists them" : "; did you mean " + meant + "?"));
}

// CLI11's message in our form, with a pointer to the help.
std::string usage_text(const CLI::App* app, const CLI::Error& error) {
  const auto given = app->get_subcommands();
  std::string text = error.what();
  // Its other sentences begin with the option.
  for (const std::string_view start :
       {"The following argument was not expected: ", "The following arguments were not expected: "}) {
    if (text.starts_with(start)) text = text.substr(start.size()) + " was not expected";
  }
  return "stepladder: " + bounded(std::move(text), longest_line) + "; `stepladder " +
         (given.empty() ? "" : given.front()->get_name() + " ") + "--help` lists the options\n";
}

// CLI11 takes the next word as the value of "--db=", so an empty variable in a script would turn a command into a file.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    const std::string option(word.substr(0, word.size() - 1));
    throw UsageError(option + (option == "--db" ? ": the file name is empty" : ": the value after = is empty"));
  }
}

// Reports the lines of the user's hardware.csv that can't be read; every command works without them. A worker doesn't
// call it, since its stderr belongs to its run.
void say_broken_user_files() {
  constexpr std::size_t most = 5;
  HardwareTable own;
  own.add_user_file();
  const std::vector<std::string>& problems = own.problems();
  for (std::size_t i = 0; i < std::min(most, problems.size()); ++i)
    std::cerr << "stepladder: " << bounded(harmless(problems[i]), longest_line) << "\n";
  if (problems.size() > most)
    std::cerr << "stepladder: and " << problems.size() - most << " more lines of " << own.user_file().string() << "\n";
}

std::vector<std::string> words;  // of the command line

int dispatch(int argc, char** argv, const Desktop& desktop) {
  refuse_empty_values(argc, argv);
  std::string database;
  CLI::App app(
      "Stepladder measures what each training optimisation buys, whether to trust the number, and whether the loss "
      "stayed the same.",
      "stepladder");
  app.set_version_flag("--version", std::string("stepladder ") + STEPLADDER_VERSION);
  const CLI::Option* given = app.add_option(
      "--db", database, "Database file (default: $STEPLADDER_DB, else stepladder.db in your data folder)");
  std::string project;
  app.add_option("project", project, "Project file to open: FILE.stepladder, the same as --db FILE.stepladder");
  app.failure_message(usage_text);
  app.require_subcommand(0, 1);
  app.fallthrough();

  CommonOptions common;
  const std::vector<Subcommand> commands = {
      train_command(app, common),
      ladder_command(app, common),
      sweep_command(app, common),
      stages_command(app, common),
      import_command(app, common),
      watch_command(app, common),
      follow_command(app, common),
      runs_command(app, common),
      ladders_command(app, common),
      show_command(app, common),
      get_command(app, common),
      edit_command(app, common),
      bin_command(app, common),
      restore_command(app, common),
      request_command(app, common, RunRequest::pause, "Pause a run before its next step"),
      request_command(app, common, RunRequest::resume, "Continue a paused run"),
      request_command(app, common, RunRequest::stop, "Stop a run after its current step"),
      compare_command(app, common),
      confirm_command(app, common),
      operators_command(app, common),
      record_command(app, common),
      check_command(app, common),
      mfu_command(app, common),
      export_command(app, common),
      profile_command(app, common),
      doctor_command(app, common),
      machines_command(app, common),
      worker_processes_command(app),
      screenshot_command(app, common, desktop.screenshot),
  };
  // Set after the commands were added: they would inherit it.
  app.footer("Without a command, the desktop opens.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  // An empty variable in a script must not select the user's own file.
  if (given->count() > 0 && database.empty()) throw UsageError("--db: the file name is empty");
  check_project(project, app);
  if (database.empty()) database = project;
  common.database_is_named = !database.empty();
  common.database = database.empty() ? default_database_file() : std::filesystem::path(database);
  for (const Subcommand& command : commands) {
    if (!*command.options) continue;
    if (command.options->get_name() != worker_command) say_broken_user_files();
    return command.run();
  }
  if (desktop.open && display_is_there()) return desktop.open(common.database);
  std::cout << app.help();
  std::cerr << "stepladder: no display, so the desktop cannot open; name a command\n";
  return exit_usage;
}

}  // namespace

const std::vector<std::string>& command_words() {
  return words;
}

int run_command_line(int argc, char** argv, const Desktop& desktop) {
  open_standard_streams();
  keep_workers_from_spinning();
  remember_command_line(argc, argv);
  words.assign(argv + std::min(argc, 1), argv + argc);
  catch_signals();
  const TerminalGuard guard;
  try {
    return close_output(dispatch(argc, argv, desktop));
  } catch (const RecipeError& error) {
    return complain(error, exit_usage);
  } catch (const FilterError& error) {
    return complain(error, exit_usage);
  } catch (const UsageError& error) {
    return complain(error, exit_usage);
  } catch (const std::exception& error) {  // StorageError, DataError, a LibTorch that doesn't load
    return complain(error, exit_failed);
  }
}

}  // namespace stepladder
