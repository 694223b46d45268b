// --on: how commands launch runs on another machine (docs/machines.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/subcommand.h"
#include "app/machines/far_runs.h"

namespace stepladder {

struct LoadedRun;  // app/runs/loaded_runs.h

struct OnMachine {
  std::string alias;   // empty: here
  std::string folder;  // there
  bool sends_tree = false;
  bool detaches = false;
  bool uses_slurm = false;
  SlurmRequest slurm;
  std::int64_t repeats = 1;  // of a watched command, as one array of jobs
  std::int64_t at_once = 0;  // of them; 0: as many as the cluster has room for

  explicit operator bool() const { return !alias.empty(); }
};

// --on, --there, --detach, --slurm and what Slurm is asked for; for `watch` also --send and --repeats.
void add_on_options(CLI::App& command, OnMachine& on, bool watches);
std::vector<CLI::Option*> add_slurm_options(CLI::App& command, SlurmRequest& slurm);

// Prints the results of a ladder that was trained there.
using PrintLadder = std::function<void(RunStore& store, const Ladder& ladder, const std::vector<LoadedRun>& runs)>;

// Runs a command line of this program there, and follows it: its exit status. `words` are those after the program's
// name; without them this process's own. Without `print`, a ladder's results are printed as `ladder` prints them.
int train_on_machine(const OnMachine& on, const CommonOptions& common, const std::vector<std::string>& words = {},
                     const PrintLadder& print = {});
// The same for a command that has results there and no runs: shows what it prints, and returns its exit status.
int run_on_machine(const OnMachine& on, const CommonOptions& common);
int watch_on_machine(const OnMachine& on, const std::vector<std::string>& command, const std::string& name,
                     const ImportOptions& options, const CommonOptions& common);

// Continues a ladder that was stopped on a machine there; nullopt if it isn't on one.
std::optional<int> continue_on_machine(const std::string& ladder, const CommonOptions& common);

// Asks the machine to stop, pause or continue the run; nullopt if it isn't on another one.
std::optional<int> ask_machine(RunStore& store, const Run& run, RunRequest request);

// Reports on stderr; with `shows_output` the programs' output appears on stdout.
FarRuns::Callbacks callbacks_for_terminal(bool shows_output);
SshAsks asks_on_terminal();  // if there is one

// Follows it to its end; nullopt if it continues there without us: after Ctrl-C, or once the machine has accepted it.
std::optional<FarProgress> follow_to_end(FarRuns& runs, const FarRun& run, bool detaches);

// Throws UsageError if there is none, or it isn't the user's.
Machine find_machine(RunStore& store, const std::string& name);

// `stepladder machines setup` installs Stepladder there, from a wheel that is sent. machine_setup.cpp.
struct MachineSetup {
  std::filesystem::path wheel;  // empty: the newest in dist/
  bool is_agreed = false;       // doesn't ask
};

void add_setup_options(CLI::App& command, MachineSetup& setup);
int set_up(const std::string& alias, const MachineSetup& setup, const CommonOptions& common);

// An option whose value has to pass the rule of its type.
template <class Text>
CLI::Option* add_checked_option(CLI::App& command, const std::string& name, Text& into, const std::string& help) {
  return command
      .add_option_function<std::string>(
          name, [&into](const std::string& text) { into = Text::from(text).value_or(into); }, help)
      ->check([](const std::string& text) { return Text::refused(text); });
}

}  // namespace stepladder
