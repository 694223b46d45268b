// The commands that train, and those that ask another process to hold or end what it trains.
#pragma once

#include "app/cli/subcommand.h"
#include "storage/records.h"

namespace stepladder {

Subcommand train_command(CLI::App& app, CommonOptions& common);
Subcommand ladder_command(CLI::App& app, CommonOptions& common);
Subcommand request_command(CLI::App& app, CommonOptions& common, RunRequest request,
                           const char* what);  // pause, resume, stop

// What `./run` does where no window can open: a ladder of a few seconds on the text that comes with the program.
int quick_ladder(const CommonOptions& common);

}  // namespace stepladder
