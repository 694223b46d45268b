// `stepladder doctor --noise`.
#pragma once

#include "app/cli/subcommand.h"

namespace stepladder {

// Trains equal runs in turns for about `seconds`, at least three of each side, and reports how much they differ.
// Returns the exit status.
int measure_noise(double seconds, const CommonOptions& common);

}  // namespace stepladder
