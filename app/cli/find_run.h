// Finds the run, ladder or checkpoint that an argument names.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "storage/database/run_store.h"

namespace stepladder {

// By number, or by a name that only one has. Both throw UsageError.
Run find_run(RunStore& store, const std::string& wanted);
Ladder find_ladder(RunStore& store, const std::string& wanted);

// "12@400": a run and a step; without a step, the newest checkpoint.
std::pair<Run, std::optional<std::int64_t>> find_fork(RunStore& store, const std::string& text);

}  // namespace stepladder
