// Other machines, as their thread has found them (app/desktop/machines).
#pragma once

#include <vector>

#include "app/machines/machine_status.h"
#include "app/machines/ssh_questions.h"

namespace stepladder {

struct MachinesState {
  std::vector<MachineStatus> list;         // by alias
  std::vector<MachineInFile> in_file;      // that came with the project, and aren't the user's
  std::vector<SshQuestion> ssh_questions;  // that wait for an answer
};

}  // namespace stepladder
