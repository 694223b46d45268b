// The commands that read the runs that are there.
#pragma once

#include "app/cli/subcommand.h"

namespace stepladder {

Subcommand runs_command(CLI::App& app, CommonOptions& common);
Subcommand show_command(CLI::App& app, CommonOptions& common);
Subcommand bin_command(CLI::App& app, CommonOptions& common);
Subcommand check_command(CLI::App& app, CommonOptions& common);

}  // namespace stepladder
