// Moves the steps of a file from before migration 9 into the table that this migration has made. Inside storage/ only.
#pragma once

#include "storage/database/database.h"

namespace stepladder {

// Whether some steps are still in the old table, so that runs would seem to have holes.
bool has_steps_to_move(Database& database);

// Moves them all, in transactions of at most about 50 ms, each of which leaves every step in one of the two tables: it
// may be cut off anywhere, and several processes may call this at once. The empty old table remains. Call outside of
// transactions.
void move_steps(Database& database);

}  // namespace stepladder
