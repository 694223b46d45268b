// The tables of a project file, and the migrations of older files (docs/database.md describes every table).
#pragma once

#include <span>

#include "storage/database/database.h"

namespace stepladder {

// "StpL", at offset 68 of the file: marks a SQLite file as a project.
inline constexpr int application_id = 0x5374'704c;

// The migrations, oldest first; a file's user_version counts those it has had. Published ones never change.
std::span<const char* const> migrations();

// Makes an empty file one that has had these migrations. Call in a transaction.
void create_schema(Database& database, std::span<const char* const> steps);

// Throws StorageError for a file of another program or of a newer version. On a read_write connection, turns on the
// write-ahead log, runs the missing migrations, each in one transaction, and creates any missing index. A file that has
// runs is backed up first (backup.h); if that fails, or an older program is writing to it, throws MigrationError and
// the file is as it was.
enum class BackUp { before_migrations, never };
void prepare_schema(Database& database, std::span<const char* const> steps = migrations(),
                    BackUp back_up = BackUp::before_migrations);

// Moves the steps of a file from before migration 9 into the table that this migration has made. Inside storage/ only.

// Whether some steps are still in the old table, so that runs would seem to have holes.
bool has_steps_to_move(Database& database);

// Moves them all, in transactions of at most about 50 ms, each of which leaves every step in one of the two tables: it
// may be cut off anywhere, and several processes may call this at once. The empty old table remains. Call outside of
// transactions.
void move_steps(Database& database);

}  // namespace stepladder
