// One command of the program: a function that declares its options and returns the function to run once they are
// parsed. app/cli/cli.cpp lists the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/report.h"
#include "app/exit_status.h"
#include "app/screenshot_request.h"
#include "engine/training_job.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Options of all commands; set before a command runs.
struct CommonOptions {
  std::filesystem::path database;
  bool database_is_named = false;  // on the command line
  std::filesystem::path journals;  // --journal: a folder; empty: none
  bool json = false;
  std::string commit;                                             // that was built; empty: unknown
  int (*screenshot)(const ScreenshotRequest& request) = nullptr;  // null in a build without the desktop
};

struct Subcommand {
  CLI::App* options;
  std::function<int()> run;  // returns the exit status
};

// What the command beneath another one does that was parsed; empty: none was.
using ChosenCommand = std::function<int()>;

// Chooses `work`, with its options, if `command` is parsed.
template <class Options, class Work>
void choose_if_parsed(CLI::App& command, ChosenCommand& chosen, std::shared_ptr<Options> options,
                      const CommonOptions& common, Work work) {
  command.callback([=, &chosen, &common] { chosen = [=, &common] { return work(*options, common); }; });
}

// For the help of every argument that find_runs (app/runs/find_run.h) reads.
inline constexpr const char* runs_help =
    "Runs: numbers, ranges (3-5), lists (2,4-6), names, latest, or a filter (\"lr=3e-4 status=finished\")";

CLI::App* add_with_json(CLI::App& app, CommonOptions& common, const char* name, const char* what);

// The group of options that help doesn't list: old spellings that CLI11 can't have as further names.
inline constexpr const char* hidden_group = "hidden";

// Validators of an option's value. A count may be written as 1e9 too.
CLI::Validator positive_count();
CLI::Validator positive_number();
CLI::Validator between(double low, double high);
// From `low` to `high` percent: "1%", or a bare number in `unit`s (0.01: percent; 1: shares), which the option gets.
CLI::Validator percent(double unit, double low, double high);
// Accepts only these values, and suggests one. Help and completion list them.
CLI::Validator one_of(std::vector<std::string> values);

// Options for facts that a log lacks, for `import` and `watch`.
void add_import_options(CLI::App& command, ImportOptions& options);

// For lists of what a database has, which may not exist yet: nullopt then, and a note if STEPLADDER_DB names it. Throws
// StorageError if --db does.
std::optional<RunStore> open_to_list(const CommonOptions& common);

// How many items of a list are shown, the newest: of a table on a terminal the usual number unless --limit says
// otherwise, 0 for all; elsewhere all.
class Limit {
 public:
  CLI::Option* add_to(CLI::App& command, const std::string& what);
  bool is_given() const { return most_.has_value(); }
  std::size_t of(std::size_t all, const CommonOptions& common) const;
  template <class Item>
  void keep_newest(std::vector<Item>& oldest_first, const char* what, const CommonOptions& common) const {
    const std::size_t left_out = oldest_first.size() - of(oldest_first.size(), common);
    oldest_first.erase(oldest_first.begin(), oldest_first.begin() + static_cast<std::ptrdiff_t>(left_out));
    note_left_out(left_out, what);
  }
  static void note_left_out(std::size_t count, const char* what);  // on stderr, when the command has ended

 private:
  std::optional<std::int64_t> most_;
};

// Throws NotFound if --db names a file that doesn't exist, for commands that only read.
void require_named_database(const CommonOptions& common);

// --force, for the commands that write a file.
void add_force(CLI::App& command, bool& forces);
// Throws UsageError if a file is there already, unless `forces`, or the user agrees on the terminal.
void keep_existing(const std::filesystem::path& out, bool forces);

bool agrees(const std::string& question);  // asks on the terminal; anything but yes is no

// --when-quiet, which makes each run wait.
void add_when_quiet(CLI::App& command, QuietPatience& patience);

// --adopt, for the commands that train by a project's recipes.
void add_adopt(CLI::App& command, bool& adopts);

// For names that the user gives: at most `longest_name` bytes (storage/bounded_text.h).
CLI::Validator short_name();
// The same for a run or ladder, which must be found by it: no blank, number, range or `latest`.
CLI::Validator new_name();

// A sentence for stderr if the hardware table lacks what --gpu names; else empty.
std::string unknown_hardware(const std::string& gpu);

void print(const Json& json);
void print_line(const Json& json, std::ostream& out);  // on one line

// Prints what `json` gives with --json, else what `text` does. Returns exit_done.
template <class MakeJson, class MakeText>
int print_as(const CommonOptions& common, const MakeJson& json, const MakeText& text) {
  if (common.json)
    print(json());
  else
    std::cout << text();
  return exit_done;
}

// The same of a list: its items as JSON, or the text of all. Without items it says on stderr that there are none.
template <class Items, class MakeJson, class MakeText>
int print_list(const CommonOptions& common, const Items& items, const MakeJson& json, const char* none,
               const MakeText& text) {
  if (!common.json && items.empty()) {
    std::cerr << "stepladder: " << none << "\n";
    return exit_done;
  }
  return print_as(
      common, [&] { return json_list(items, json); }, [&] { return text(items); });
}
// Prints the error on stderr, as a sentence or as one line of JSON; returns `status`.
int report_error(const std::exception& error, int status);
int report_error(const std::string& sentence);  // the same for a failure; returns exit_failed
bool errors_are_json();                         // --json is on the command line

// The way out of a damaged file: "`stepladder doctor --rescue ..." and what it does.
std::string rescue_hint(const std::filesystem::path& damaged);

// Call first: reopens standard streams that the caller has closed, so that no file gets their numbers.
void open_standard_streams();
// Call last: flushes stdout; returns `status`, or exit_failed if stdout couldn't be written.
int close_output(int status);

// Throws UsageError, which names the option, if writing `out` would overwrite the database or SQLite's files beside it.
void keep_off_database(const std::filesystem::path& out, const std::filesystem::path& database,
                       const std::string& option = "--out");

DeviceReport probe_machine();  // the machine's hardware; blocks until the engine has detected it

// The words of this process's command line after the program.
const std::vector<std::string>& command_words();

// Ctrl-C and termination: the first sets interrupted(), the second ends the process at once.
void catch_signals();
bool interrupted();
struct Interrupted {};  // Ctrl-C while a question waits for its answer; ends the process with exit_interrupted

}  // namespace stepladder
