// Runs that had more steps than the file still has. Inside storage/ only.
#pragma once

#include <string>

#include "storage/database/database.h"

namespace stepladder {

// Parts of sentences, empty if there are none: "run 3 has 4,963 of the 5,000 steps that its summary counts". A summary
// is removed in the same transaction that changes a run's steps, so one that counts more proves a loss. Reads every
// step.
std::string lost_steps(Database& database);

}  // namespace stepladder
