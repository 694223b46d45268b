// Runs of the database as the runs of a speed-run pool.
#pragma once

#include "storage/database/run_store.h"
#include "storage/speedrun/record_pool.h"

namespace stepladder {

// The run's evaluations and the sum of its step times, read in bounded memory. With a `problem` if it isn't a finished
// run whose last step was evaluated. Throws StorageError.
SpeedrunLog speedrun_log_of(RunStore& store, const Run& run);

}  // namespace stepladder
