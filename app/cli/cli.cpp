// Builds the parser from all commands, runs the one that was named, and turns exceptions into a sentence and an exit
// status. Without a command it opens the window or, without a display, prints the help. A new command gets a line in
// commands.def.
#include "app/cli/cli.h"

#include <algorithm>
#include <iostream>
#include <string_view>

#include "app/cli/commands.h"
#include "app/cli/help/arguments.h"
#include "app/cli/help/help.h"
#include "app/cli/table.h"
#include "app/cli/terminal/output_options.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/host/patch.h"
#include "app/runs/run_filter.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "engine/engine.h"
#include "engine/processes/worker_processes.h"
#include "storage/analysis/hardware.h"
#include "storage/bounded_text.h"

namespace stepladder {
namespace {

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

int dispatch(int argc, char** argv, const Desktop& desktop, const std::string& commit) {
  refuse_empty_values(argc, argv);
  std::string database;
  CLI::App app(
      "Stepladder measures what each training optimisation buys, whether to trust the number, and whether the loss "
      "stayed the same.",
      "stepladder");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", std::string("stepladder ") + STEPLADDER_VERSION,
                       "Print the version and the parts that are in it");
  const CLI::Option* given = app.add_option(
      "--db", database, "Database file (default: $STEPLADDER_DB, else stepladder.db in your data folder)");
  std::string project;
  app.add_option("project", project, "Project file to open: FILE.stepladder, the same as --db FILE.stepladder");
  OutputOptions output;
  add_output_options(app, output);
  bool keeps_no_patch = false;
  app.add_flag("--no-patch", keeps_no_patch, "Don't keep the uncommitted changes of the checkout with new runs");
  app.require_subcommand(0, 1);
  app.fallthrough();

  CommonOptions common;
  common.commit = commit;
  common.screenshot = desktop.screenshot;
  const std::vector<Subcommand> commands = {
#define COMMAND(name) name##_command(app, common),
#include "app/cli/commands.def"
#undef COMMAND
  };
  app.add_flag("--json", common.json, "Print JSON; an error is one line of it on stderr");
  check_numbers(app);
  words = respelled(app, std::move(words));
  check_words(app, words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    begin_output(output, *command_named(app, {"help"}));
    std::cout << help_text(parsed_command(app), terminal_columns());
    return exit_done;
  } catch (const CLI::CallForVersion&) {
    return print_version(common);
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error, words);
  }
  begin_output(output, parsed_command(app));
  if (keeps_no_patch) keep_no_patches();
  // An empty variable in a script must not select the user's own file.
  if (given->count() > 0 && database.empty()) throw UsageError("--db: the file name is empty");
  if (!project.empty() && !app.get_subcommands().empty())
    throw UsageError("'" + project + "' was not expected", {.code = "unexpected-argument", .value = project});
  if (!project.empty() && !std::filesystem::exists(project))
    throw NotFound(project + " does not exist", {.argument = "project", .value = project});
  if (database.empty()) database = project;
  common.database_is_named = !database.empty();
  common.database = database.empty() ? default_database_file() : std::filesystem::path(database);
  leave_out_of_patches(common.database);
  for (const Subcommand& command : commands) {
    if (!*command.options) continue;
    if (command.options->get_name() != worker_command) say_broken_user_files();
    return command.run();
  }
  if (desktop.open && display_is_there()) return desktop.open(common.database);
  if (!common.json) std::cout << help_text(app, terminal_columns());
  return report_error(UsageError("no display, so the desktop cannot open",
                                 {.code = "missing-argument", .argument = "command", .hint = "name a command"}),
                      exit_usage);
}

}  // namespace

const std::vector<std::string>& command_words() {
  return words;
}

int run_command_line(int argc, char** argv, const Desktop& desktop, const std::string& commit) {
  open_standard_streams();
  keep_workers_from_spinning();
  remember_command_line(argc, argv);
  words.assign(argv + std::min(argc, 1), argv + argc);
  catch_signals();
  TerminalGuard guard;
  if (const std::size_t columns = message_columns(); columns > 0 && !errors_are_json())
    guard.wrap_messages([columns](const std::string& line) {
      return line.starts_with('{') ? line + "\n" : notes_text(line, columns);  // JSON stays a line
    });
  try {
    return close_output(dispatch(argc, argv, desktop, commit));
  } catch (const RecipeError& error) {
    return report_error(error, exit_usage);
  } catch (const FilterError& error) {
    return report_error(error, exit_usage);
  } catch (const NotFound& error) {
    return report_error(error, exit_failed);
  } catch (const UsageError& error) {
    return report_error(error, exit_usage);
  } catch (const Interrupted&) {
    return exit_interrupted;
  } catch (const std::exception& error) {  // StorageError, DataError, a LibTorch that doesn't load
    return report_error(error, exit_failed);
  }
}

}  // namespace stepladder
