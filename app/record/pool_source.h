// Resolves the names of pools that `stepladder record` and the Record view accept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/speedrun/record_pool.h"

namespace stepladder {

// Resolves names into runs and logs, in their order, each once:
//   a folder of logs, or a log
//   rung:LADDER/STAGE      the repeats of a ladder's rung; both by number (rungs from 0) or name
//   filter:EXPRESSION      the project's runs that a filter accepts (app/runs/run_filter.h)
//   anything else          runs (app/runs/find_run.h)
// Opens the database to read it for the first name that needs it. Blocks. Throws UsageError, FilterError, StorageError.
RecordPool read_pool(const std::vector<std::string>& names, const LogQuestion& question,
                     const std::filesystem::path& database);

// The run's evaluations and its training time (TrainingProgress), read in bounded memory. With a `problem` if it isn't
// a finished run whose last step was evaluated. Throws StorageError.
SpeedrunLog speedrun_log_of(RunStore& store, const Run& run);

}  // namespace stepladder
