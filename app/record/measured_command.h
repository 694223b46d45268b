// Runs commands whose outputs are logs, so that neither a kill of this program nor a power cut loses a run or counts it
// twice. A process of its own waits for the command and writes how it ended; a program that is started again waits for
// that process instead of running the command once more.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/record/log_figure.h"
#include "storage/records.h"

namespace stepladder {

struct MeasuredCommand {
  std::filesystem::path log;    // gets what the command prints, to both of its outputs
  std::filesystem::path state;  // a file of its own in a folder that exists: how the command ended
  std::vector<std::string> command;
  std::filesystem::path folder;                                  // that the command runs in
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};

struct CommandEnd {
  int exit_status = 0;          // 128 + N if signal N killed it, 127 if it couldn't be started
  double started_at = missing;  // unix seconds
  double wall_s = missing;
  std::string host = {};        // empty: it ran here
  bool left_processes = false;  // processes that it started were still working when it had ended
};

// The end of the command; nullopt if it hasn't ended. Throws StorageError for a state file that isn't ours.
std::optional<CommandEnd> end_of_command(const std::filesystem::path& state);

// Stores the end of a command that ran elsewhere. Throws DataError.
void write_end(const std::filesystem::path& state, const CommandEnd& end);

// What a command that has ended says: its wall clock, or the figure in its log. Throws as figure_of_log, and NoFigure
// for a wall clock if its work went on after its end.
LogFigure figure_of_command(const FigureQuestion& question, const LoggedRun& logged, const CommandEnd& end);

// True if another process has started it, and it hasn't ended.
bool is_under_way(const MeasuredCommand& run);

// Runs the command to its end, or waits for the one that another process has started. A log of a run without an end
// (the machine went down) is renamed to NAME.interrupted-K.log first. Nothing if `stop` becomes true: the command is
// ended then, its log is renamed in the same way, and it counts as not run. Blocks; needs a process without other
// threads. Throws StorageError.
std::optional<CommandEnd> run_measured(const MeasuredCommand& run, const std::function<bool()>& stop);

// Renames the log to NAME.WHAT-K.log, with the first K that is free, and removes the state.
void put_log_aside(const MeasuredCommand& run, const std::string& what);

}  // namespace stepladder
