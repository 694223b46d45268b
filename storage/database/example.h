// The ladder that a new project starts with.
#pragma once

#include <filesystem>

#include "storage/database/run_store.h"

namespace stepladder {

// Adds the ladder "A100, three rungs" from assets_folder/examples/a100-three-rungs.csv to a project without runs, once
// in the life of a file: the setting "example_added" remembers that it was looked at, in the same transaction. Throws
// StorageError naming the CSV file where it is missing or malformed; nothing is added then.
void add_example(RunStore& store, const std::filesystem::path& assets_folder);

}  // namespace stepladder
