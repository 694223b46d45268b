// Run events, written as rows. Inside storage/ only.
#pragma once

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

}  // namespace stepladder
