// Finds out what a machine has, and explains what it lacks. Command line and Machines view both use it.
#pragma once

#include <string>
#include <vector>

#include "app/machines/link.h"
#include "app/machines/machine_status.h"

namespace stepladder {

// A sentence that ends with what the user can do; `why` is ssh's own or the link's.
std::string explained(const std::string& why, const std::string& alias);

// Asks a link that is up; `report` must outlive the answers, and is_complete says when all have arrived.
void ask_for_report(Link& link, MachineReport& report);
MachineReport unreachable(const Link& link);  // or without a report, since the far program isn't there (only_look)

// "12 jobs running, 3 waiting, as of 2026-11-21 13:20"; empty: the queue isn't known.
std::string queue_text(const MachineReport& report);

std::vector<MachineCheck> checks_of(const MachineReport& report, const Machine& machine);

}  // namespace stepladder
