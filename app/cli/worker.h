// The processes of a run beside rank 0: they train, but keep nothing and print nothing to stdout.
#pragma once

#include "engine/processes/rendezvous.h"
#include "engine/recipe.h"

namespace stepladder {

// The hidden command `stepladder worker`, which rank 0 starts (engine/processes/worker_processes.h): the recipe comes
// on stdin. Ends with the process that started it, whatever ends that one. Returns the exit status.
int run_worker();

// A rank that a launcher started, with its command line's recipe. `interrupted` is asked ten times a second; its first
// yes stops the run on all ranks. Returns the exit status.
int run_rank(const Placement& placement, const Recipe& recipe, bool (*interrupted)());

}  // namespace stepladder
