// The other processes of a run that is trained by several: started by rank 0, watched, and ended with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/processes/rendezvous.h"

namespace stepladder {

// The hidden command under which the program runs as one of them, with its placement in the environment and the recipe
// as JSON on stdin. On failure it writes one sentence to stderr.
inline constexpr const char* worker_command = "worker";
// Holds the pid of the process that started it: a worker whose parent is another one has been orphaned.
inline constexpr const char* worker_parent_variable = "STEPLADDER_PARENT";
// How the reason of a process begins that failed only because another one did.
inline constexpr const char* lost_contact = "lost contact with ";

class WorkerProcesses {
 public:
  // Starts ranks 1 to world_size - 1 of this program. They die when the calling thread ends, whatever ends it. Throws
  // std::runtime_error where one cannot be started.
  WorkerProcesses(const Placement& rank0, const std::string& recipe_json);

  // Kills those that still run; none is left when it returns.
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Why the first that ended badly did: "rank 2 was killed by signal 9", "rank 1 failed: out of memory". Those that
  // only lost contact do not count. The others are killed at once, so that nobody waits for it in a collective. Any
  // thread; never blocks.
  std::optional<std::string> failure() const;

  // Waits until all have ended by themselves; false where some have not in that time.
  bool wait_all_ended(std::chrono::milliseconds patience);

 private:
  struct Worker {
    int rank = 0;
    pid_t pid = 0;
    int errors = -1;     // the reading end of its stderr
    std::string said;    // on stderr, its newest part
    bool ended = false;  // and reaped: the pid may belong to another process by now
  };

  void start(Worker& worker, const Placement& rank0, const std::string& recipe_json);
  void watch();
  void read_errors(Worker& worker);
  void reap(Worker& worker);
  void kill_all();  // with the mutex held

  mutable std::mutex mutex_;  // guards what the watcher changes
  std::condition_variable changed_;
  std::vector<Worker> workers_;
  std::optional<std::string> failure_;
  std::jthread watcher_;
};

}  // namespace stepladder
