// Rows of `runs`, written and read. Inside storage/ only.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/process.h"
#include "storage/database/removal.h"
#include "storage/records.h"

namespace stepladder {

// The columns that `read_run` reads, for a SELECT in which the table has its own name.
extern const std::string run_columns;
extern const int run_column_count;

// The condition on `runs` for lists: without hidden runs, and without those in the bin.
extern const std::string is_listed;

// Texts are bounded (storage/bounded_text.h), when written and when read. Throws StorageError if the file is damaged.
Run read_run(const Database& database, const Statement& row);
std::optional<Run> read_run(Database& database, RunId id);

// Deletes the requests in the file from before this process owned the run: nobody can have meant them.
void forget_requests(Database& database, RunId run);

// No list of runs is so long: a higher number is a damaged one, or a stranger's.
inline constexpr RunId highest_run = RunId{1} << 40;

RunId insert_run(Database& database, Run run, const std::optional<ProcessIdentity>& owner, Hidden hidden = Hidden::no);

// These throw StorageError if there is no such run.
void update_run(Database& database, Run run);  // all but its owner and what only a training sets
void start_run(Database& database, const RunStarted& started, const ProcessIdentity& owner);
void end_run(Database& database, const RunEnded& ended);

// Run::printed is stored in the JSON object of the column `environment`, under these names.
inline constexpr const char* printed_unit = "throughput_unit";
inline constexpr const char* printed_rate = "printed_tokens_per_s";
inline constexpr const char* printed_clock = "times_from_clock";
inline constexpr const char* printed_clock_start = "clock_starts_after";
inline constexpr const char* printed_per_step = "per_step_by_other_figures";
inline constexpr std::array printed_names{printed_unit, printed_rate, printed_clock, printed_clock_start,
                                          printed_per_step};

// 128 random bits as 32 hexadecimal digits: no two runs share them, on any machine.
std::string random_uid();

// A run whose owner has exited.
struct DeadRun {
  RunId id;
  ProcessIdentity owner;
};
std::vector<DeadRun> dead_runs(Database& database, const std::string& condition);  // in SQL

// All runs of a query for `run_columns`.
std::vector<Run> read_runs(const Database& database, Statement& rows);

// Binds the three columns of a process; without one they are NULL.
Statement& bind_owner(Statement& statement, const std::optional<ProcessIdentity>& owner);

}  // namespace stepladder
