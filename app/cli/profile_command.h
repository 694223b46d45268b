// `stepladder profile`: forward and backward pass of a model, each call timed for itself, with and without warm-up.
#pragma once

#include "app/cli/subcommand.h"

namespace stepladder {

Subcommand profile_command(CLI::App& app, CommonOptions& common);

}  // namespace stepladder
