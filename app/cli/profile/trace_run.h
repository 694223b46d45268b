// `stepladder profile run`: traces a few steps of a run's recipe, or of one that is given, with LibTorch's profiler.
#pragma once

#include <functional>

#include "app/cli/subcommand.h"

namespace stepladder {

// Adds it to `profile`. Parsing it sets `chosen`.
void add_trace_run_command(CLI::App& profile, CommonOptions& common, std::function<int()>& chosen);

}  // namespace stepladder
