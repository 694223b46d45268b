// What the command line calls a run, a ladder or a checkpoint, found in the database.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "storage/database/run_store.h"

namespace stepladder {

// Each by its number or, where just one has it, its name. Throw UsageError.
Run find_run(RunStore& store, const std::string& wanted);
Ladder find_ladder(RunStore& store, const std::string& wanted);

// "12@400": a run and a step; the newest checkpoint where there is no step.
std::pair<Run, std::optional<std::int64_t>> find_fork(RunStore& store, const std::string& text);

// For the commands that only read. A file that is not there yet is not made; runs whose process died are closed, where
// the file may be written.
std::optional<RunStore> open_to_read(const std::filesystem::path& file);
RunStore open_existing(const std::filesystem::path& file);  // throws StorageError where there is none

}  // namespace stepladder
