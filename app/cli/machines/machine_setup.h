// `stepladder machines setup`: installs Stepladder on a machine, from a wheel that is sent there.
#pragma once

#include <filesystem>
#include <string>

#include "app/cli/subcommand.h"

namespace stepladder {

struct MachineSetup {
  std::filesystem::path wheel;  // empty: the newest in dist/
  bool is_agreed = false;       // doesn't ask
};

void add_setup_options(CLI::App& command, MachineSetup& setup);
int set_up(const std::string& alias, const MachineSetup& setup, const CommonOptions& common);

}  // namespace stepladder
