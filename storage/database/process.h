// Which process owns a run, so that another one can tell later whether it still lives.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder {

// A pid alone is not enough: it is given again after a while, and after a restart of the machine.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::int64_t start = 0;  // field 22 of /proc/PID/stat, clock ticks since the machine started; 0: not known
  std::string boot;        // /proc/sys/kernel/random/boot_id; empty: not known
};

ProcessIdentity this_process();

// False where the machine was restarted, no such process runs, or its pid now belongs to a later one.
bool is_alive(const ProcessIdentity& process);

}  // namespace stepladder
