// Commands about other machines.
#pragma once

#include "app/desktop/command.h"
#include "app/machines/machine_status.h"

namespace stepladder {

struct AddMachine {  // or change what it is asked for
  Machine machine;
};
struct RemoveMachine {
  MachineAlias alias;
};
struct AdoptMachine {  // one that came with the project's file
  MachineInFile shown;
};
struct AskMachine {  // what it has, now
  MachineAlias alias;
};

// Shows what the thread of the machines has found out. Call between frames; never blocks.
void take_machine_news(DesktopState& desktop);

// Sends a signal to a run on a machine, and says so. False: the run isn't on one.
bool signal_machine(DesktopState& desktop, RunId run, const char* signal);

}  // namespace stepladder
