#pragma once

#include "app/cli/subcommand.h"

namespace stepladder {

// Where the time of a run's steps goes; of several runs, what moved.
Subcommand operators_command(CLI::App& app, CommonOptions& common);

}  // namespace stepladder
