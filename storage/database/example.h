// The ladder that a new project starts with.
#pragma once

#include <filesystem>

#include "storage/database/run_store.h"

namespace stepladder {

// Adds the ladder "A100, three rungs" from assets_folder/examples/a100-three-rungs.csv to a project without runs, once
// for each file: the setting "example_added" remembers it, in the same transaction. Throws StorageError with the CSV
// file's name if it is missing or malformed, and adds nothing then.
void add_example(RunStore& store, const std::filesystem::path& assets_folder);

}  // namespace stepladder
