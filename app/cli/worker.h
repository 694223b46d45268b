// The worker processes of a run: they train, but record nothing and print nothing to stdout.
#pragma once

#include <string_view>

#include "engine/processes/rendezvous.h"
#include "engine/recipe.h"

namespace stepladder {

// Trains as a rank that a launcher started, with the recipe of its command line. Calls `interrupted` ten times a second
// and stops the run on all ranks once it returns true. Returns the exit status.
int run_rank(const Placement& placement, const Recipe& recipe, bool (*interrupted)());

// For commands that train several runs: throws UsageError if a launcher started this process as one of several.
void refuse_several_processes(std::string_view what);  // "a ladder"

}  // namespace stepladder
