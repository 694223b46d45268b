// The last part of a rescue: the steps that the saved runs lack, and rows for those whose own row is lost. Inside
// storage/ only.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/rescue/rescue.h"
#include "storage/records.h"

namespace stepladder {

struct StepKey {
  RunId run = 0;
  std::int64_t step = 0;
};

// Rows of `steps` are lost between these two; without one, from the table's begin or to its end.
struct StepGap {
  std::optional<StepKey> before;
  std::optional<StepKey> after;
};

struct StepLosses {
  std::vector<StepGap> gaps;
  std::map<RunId, std::int64_t> steps_by_summary;
};

// Makes the file consistent: rows of runs and ladders that are lost but referred to, and the status and reason of runs
// that lack steps. Fills in the report's runs, and those of its tables' counts that change. Throws StorageError if
// SQLite doesn't find the result sound.
void repair_rescued_runs(Database& database, const StepLosses& losses, RescueReport& report);

}  // namespace stepladder
