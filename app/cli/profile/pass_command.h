// `stepladder profile passes`: kept results of `stepladder profile`, listed, shown and compared.
#pragma once

#include <functional>

#include "app/cli/subcommand.h"

namespace stepladder {

// Adds it to `profile`. Parsing it sets `chosen`.
void add_pass_command(CLI::App& profile, CommonOptions& common, std::function<int()>& chosen);

}  // namespace stepladder
