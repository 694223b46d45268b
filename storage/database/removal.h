// Deletes rows in slices (slices.h), and gives their space back. Inside storage/ only.
#pragma once

#include <span>
#include <string>

#include "storage/database/bin.h"
#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

// The values of `runs.hidden`. No list shows a hidden run, and no other program touches it while its owner lives.
enum class Hidden { no = 0, being_written = 1, being_deleted = 2 };

// Deletes a run's rows in one of the tables that have many of them.
void delete_rows(Database& database, const std::string& table, RunId run);

// Deletes hidden runs with everything that belongs to them, and ladders that have no run afterwards. A run's own row is
// the last, so the work can be continued if the process is killed, or if `keep_deleting` returned false, which is asked
// before each piece; then this returns false.
bool delete_runs(Database& database, std::span<const RunId> hidden_runs, const KeepDeleting& keep_deleting = {});

// The same for those of this process that are being deleted, also what an earlier attempt left. Gives back their space.
void delete_own_hidden_runs(Database& database, const KeepDeleting& keep_deleting = {});

// Makes the file smaller by its free pages, if it was created by a version that can (docs/database.md).
void give_back_space(Database& database);

}  // namespace stepladder
