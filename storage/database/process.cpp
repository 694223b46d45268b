#include "storage/database/process.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "storage/process_stat.h"

namespace stepladder {
namespace {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::optional<ProcessIdentity> other_owner;

}  // namespace

ProcessIdentity this_process() {
  return process_identity(getpid());
}

ProcessIdentity process_identity(std::int64_t pid) {
  return {.pid = pid, .start = process_stat(pid).value_or(ProcessStat{}).start, .boot = boot_id()};
}

ProcessIdentity run_owner() {
  return other_owner ? *other_owner : this_process();
}

void own_runs_as(const ProcessIdentity& owner) {
  other_owner = owner;
}

bool is_alive(const ProcessIdentity& process) {
  const std::string boot = boot_id();
  // On a system that has both, an identity with neither matches no process: its pid alone may be anybody's.
  if (process.pid <= 0 || (process.start == 0 && process.boot.empty() && !boot.empty())) return false;
  if (!process.boot.empty() && !boot.empty() && process.boot != boot) return false;
  if (kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return false;
  const ProcessStat stat = process_stat(process.pid).value_or(ProcessStat{});
  if (stat.state == 'Z' || stat.state == 'X') return false;  // exited, but its parent has not waited for it yet
  return process.start == 0 || stat.start == 0 || process.start == stat.start;
}

}  // namespace stepladder
