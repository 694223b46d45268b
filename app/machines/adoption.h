// Describes what a machine that came with the project's file would do if the user made it one of theirs. Command line
// and window show the same sentences first.
#pragma once

#include <string>
#include <vector>

#include "storage/database/machine_store.h"

namespace stepladder {

// One sentence a line; texts are fit for a terminal.
std::vector<std::string> adoption_text(const MachineInFile& machine);

}  // namespace stepladder
