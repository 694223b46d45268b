// Deletes rows in slices (slices.h), and gives their space back. Inside storage/ only.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "storage/database/database.h"
#include "storage/records.h"

namespace stepladder {

// What `runs.hidden` says. No list shows a hidden run, and no other program touches it while its owner lives.
enum class Hidden { no = 0, being_written = 1, being_deleted = 2 };

// Deletes a run's rows in one of the tables that have many of them.
void delete_rows(Database& database, const std::string& table, RunId run);

// Deletes hidden runs with everything that belongs to them, and ladders that have no run afterwards. A run's own row is
// the last, so the work can be continued if the process is killed, or if `keep_deleting` returned false, which is asked
// before each piece; then this returns false.
bool delete_runs(Database& database, std::span<const RunId> hidden_runs,
                 const std::function<bool(std::size_t runs_left)>& keep_deleting = {});

// Makes the file smaller by its free pages, if it was created by a version that can (docs/database.md).
void give_back_space(Database& database);

}  // namespace stepladder
