// `stepladder profile import | list | show | diff | remove`: the traces of other programs' profilers.
#pragma once

#include <functional>

#include "app/cli/subcommand.h"

namespace stepladder {

// Adds them to `profile`. Parsing one of them sets `chosen`.
void add_trace_commands(CLI::App& profile, CommonOptions& common, std::function<int()>& chosen);

}  // namespace stepladder
