// The tables of a project file, and the migrations of older files (docs/database.md describes every table).
#pragma once

#include <span>

#include "storage/database/database.h"

namespace stepladder {

// "StpL", at offset 68 of the file: marks a SQLite file as a project.
inline constexpr int application_id = 0x5374'704c;

// The migrations, oldest first; a file's user_version counts those it has had. Published ones never change.
std::span<const char* const> migrations();

// Throws StorageError for a file of another program or of a newer version. On a read_write connection, turns on the
// write-ahead log, runs the missing migrations, each in one transaction, and creates any missing index. A file that has
// runs is backed up first (backup.h); if that fails, or an older program is writing to it, throws MigrationError and
// the file is as it was.
enum class BackUp { before_migrations, never };
void prepare_schema(Database& database, std::span<const char* const> steps = migrations(),
                    BackUp back_up = BackUp::before_migrations);

}  // namespace stepladder
