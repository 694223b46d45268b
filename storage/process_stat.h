// What Linux says of another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace stepladder {

struct ProcessStat {
  std::string name;  // of its program, cut by the kernel; may hold any character
  char state = '?';
  pid_t parent = 0;
  double cpu_s = 0;        // that it has used in user and system mode
  std::int64_t start = 0;  // clock ticks since the machine started
};

// Reads `folder`/stat, of "/proc/PID" or of a thread's "/proc/self/task/TID". nullopt: it has ended.
std::optional<ProcessStat> process_stat(const std::string& folder);

inline std::optional<ProcessStat> process_stat(std::int64_t pid) {
  return process_stat("/proc/" + std::to_string(pid));
}

}  // namespace stepladder
