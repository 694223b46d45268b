// What a project file holds, and how an older one becomes a newer one (docs/database.md describes every table).
#pragma once

#include <span>

#include "storage/database/database.h"

namespace stepladder {

// "StpL", at offset 68 of the file: how a project is told from any other SQLite file.
inline constexpr int application_id = 0x5374'704c;

// The migrations, oldest first; a file's user_version is how many of them it has had. Published ones never change.
std::span<const char* const> migrations();

// Throws StorageError for a file of another program and for one that a newer version wrote. Otherwise a read_write
// connection gets the write-ahead log, the migrations that are due, each in one transaction, and any missing index.
void prepare_schema(Database& database, std::span<const char* const> steps = migrations());

}  // namespace stepladder
