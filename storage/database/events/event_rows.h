// Run events, written as rows. Inside storage/ only.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/process.h"
#include "storage/records.h"

namespace stepladder {

// The effects of write_events, for caches.
struct WrittenEvents {
  std::vector<RunId> missing;   // these runs aren't in the file, or belong to another process; nothing was written
  std::vector<RunId> outdated;  // what is cached about these is no longer true
  std::vector<RunId> ended;
};

// Stored steps of a run that is about to end as finished, up to `last`.
struct CountedSteps {
  std::int64_t count = 0;
  std::int64_t last = 0;
};

// Counts the steps of each run that these events end as finished. Call before the transaction, since a long run has
// many: others may write meanwhile.
std::map<RunId, CountedSteps> count_steps_of_finished(Database& database, std::span<const RunEvent> events);

// Call inside a transaction. A launched run that finished without each of its steps in the file is stored as failed.
// `left_by`: the events are what an exited process left. Only runs that it owned are written, and of them only what
// isn't stored.
WrittenEvents write_events(Database& database, std::span<const RunEvent> events,
                           const std::optional<ProcessIdentity>& left_by = std::nullopt,
                           const std::map<RunId, CountedSteps>& counted = {});

// Rows about a run besides its steps: system metrics, text samples, console output, operator times. Inside storage/
// only.

void insert_system_metrics(Database& database, const SystemMetrics& sample);
void insert_text_sample(Database& database, const TextSample& sample);
void insert_console(Database& database, const ConsoleText& printed);
void replace_profile(Database& database, const StepProfile& profile);

// Samples after `after`, at most `most`, in the order of time; by default all.
std::vector<SystemMetrics> read_system_metrics(Database& database, RunId run,
                                               double after = -std::numeric_limits<double>::infinity(),
                                               std::int64_t most = -1);

// Reads them in order, some thousands at a time; no read lock is held between two calls.
class SystemMetricsReader {
 public:
  SystemMetricsReader(Database& database, RunId run) : database_(database), run_(run) {}
  bool next(SystemMetrics& sample);  // false: none left

 private:
  Database& database_;
  const RunId run_;
  std::vector<SystemMetrics> samples_;
  std::size_t place_ = 0;
};

}  // namespace stepladder
