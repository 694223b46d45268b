// Resolves the names of pools that `stepladder record` and the Record view accept.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/speedrun/record_pool.h"

namespace stepladder {

// Finds a run by its number or name; throws UsageError.
using RunFinder = std::function<Run(RunStore& store, const std::string& wanted)>;

// Resolves names into runs and logs, in their order, each once:
//   a folder of logs, or a log
//   rung:LADDER/STAGE      the repeats of a ladder's rung; both by number (rungs from 0) or name
//   filter:EXPRESSION      the project's runs that a filter accepts (app/runs/run_filter.h)
//   anything else          a run, as `find` finds it
// Opens the database to read it for the first name that needs it. Blocks. Throws UsageError, FilterError, StorageError.
RecordPool read_pool(const std::vector<std::string>& names, const LogQuestion& question,
                     const std::filesystem::path& database, const RunFinder& find);

// The runs that a filter accepts, newest last. Throws FilterError, StorageError.
std::vector<Run> filtered_runs(RunStore& store, const std::string& expression);

}  // namespace stepladder
