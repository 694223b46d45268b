// Opens a database to read it: for the commands that only read, and for screenshots. Any thread.
#pragma once

#include <filesystem>
#include <optional>

#include "storage/database/run_store.h"

namespace stepladder {

// Returns nullopt if the file doesn't exist, and doesn't create it. Closes runs whose process has exited, if the file
// can be written. Throws StorageError.
std::optional<RunStore> open_to_read(const std::filesystem::path& file);

// The same, but throws NotFound (app/exit_status.h) if the file doesn't exist.
RunStore open_existing(const std::filesystem::path& file);

}  // namespace stepladder
