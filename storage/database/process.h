// Identifies the process that owns a run, so that another one can check later whether it is still alive.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder {

// A pid alone isn't enough: the system reuses it, also after a restart.
struct ProcessIdentity {
  std::int64_t pid = 0;
  std::int64_t start = 0;  // field 22 of /proc/PID/stat, clock ticks since the machine started; 0: not known
  std::string boot;        // /proc/sys/kernel/random/boot_id; empty: not known
};

ProcessIdentity this_process();
ProcessIdentity process_identity(std::int64_t pid);

// The process that owns the runs that this one creates or starts: this one or, after own_runs_as, that one. A watched
// program's runs belong to its keeper, which outlives the process that records them.
ProcessIdentity run_owner();
void own_runs_as(const ProcessIdentity& owner);  // call before any thread writes runs

// False if the machine was restarted, the process has exited, or its pid now belongs to a later one.
bool is_alive(const ProcessIdentity& process);

}  // namespace stepladder
