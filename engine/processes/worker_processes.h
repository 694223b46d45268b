// The worker processes of a run that several processes train. Rank 0 starts, watches and ends them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/processes/rendezvous.h"
#include "storage/process.h"
#include "storage/thread_safety.h"

namespace stepladder {

// The hidden command that runs the program as a worker, with its placement in the environment and the recipe as JSON
// on stdin. On failure it writes one sentence to stderr.
inline constexpr const char* worker_command = "worker";
// The environment variable with the pid of rank 0. A worker whose parent has another pid is an orphan.
inline constexpr const char* worker_parent_variable = "STEPLADDER_PARENT";
// The first words of a failure that only follows from another process's failure.
inline constexpr const char* lost_contact = "lost contact with ";

class WorkerProcesses {
 public:
  // Starts ranks 1 to world_size - 1 of this program, with rank 0's store_descriptor. The system kills them when the
  // calling thread ends. Throws std::runtime_error if one cannot be started.
  WorkerProcesses(const Placement& rank0, const std::string& recipe_json);

  // Kills the workers that still run; all have ended when it returns.
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // The first failure: "rank 2 was killed by signal 9", "rank 1 failed: out of memory". Workers that only lost contact
  // do not count. The other workers are killed at once, so that nobody waits for the failed one in a collective. Any
  // thread; never blocks.
  std::optional<std::string> failure() const;

  // Waits until all have exited on their own; false if some still run after `patience`.
  bool wait_all_ended(std::chrono::milliseconds patience);

 private:
  struct Worker {
    int rank = 0;
    std::optional<Process> process;
    Descriptor errors;   // the reading end of its stderr
    std::string said;    // the newest part of its stderr
    bool ended = false;  // and waited for, so its number may be another process's now
  };

  void start(Worker& worker, const Placement& rank0, const std::string& recipe_json);
  void watch();
  void read_errors(Worker& worker);
  void reap(Worker& worker);
  void kill_all() REQUIRES(mutex_);
  bool all_ended() const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Worker> workers_;  // only the watcher changes them; `ended` under the mutex, so that others may read it
  std::optional<std::string> failure_ GUARDED_BY(mutex_);
  std::jthread watcher_;
};

}  // namespace stepladder
