// Measures how busy other programs keep this machine, and says it in words: for `doctor` and for Launch, before a run
// starts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/job.h"
#include "engine/others_watch.h"
#include "storage/records.h"

namespace stepladder {

struct MachineLoad {
  Contention others;  // unknown before the first reading
  std::vector<BusyProcess> busiest;

  bool is_known() const { return !is_missing(others.other_cores); }
  bool would_disturb(int needed_cores) const;  // a run that starts now
  // How many times as long its steps take on a CPU, by the cores that others leave it: 1 to 4.
  double slowdown(int needed_cores) const;

  // "Other programs use 1.3 of 2 cores (cc1plus 0.9, ld 0.3)", or that it is unknown.
  std::string text() const;
};

// Not thread-safe: one thread at a time.
class LoadWatch {
 public:
  // Reads /proc if the last reading is at least half a second old. A reading of a quiet machine costs some tens of
  // microseconds, of a busy one milliseconds, since it finds out who is busy.
  const MachineLoad& read();
  // Waits until it can read, then does.
  const MachineLoad& wait_and_read();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  OthersWatch watch_{OthersWatch::Run::whole_process};
  BusyProcesses processes_;
  MachineLoad load_;
};

// Reads on another thread, since that takes milliseconds on a busy machine: keeps /proc out of the frames. UI thread.
class MachineLoadReader {
 public:
  // `wake` is called on the other thread when a reading can be taken.
  explicit MachineLoadReader(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Takes a finished reading into `load`, and begins another one half a second after the last. Never blocks.
  void update(MachineLoad& load);

 private:
  std::function<void()> wake_;
  std::chrono::steady_clock::time_point due_{};
  std::unique_ptr<LoadWatch> watch_;  // made by the first reading; only the job uses it
  Job<MachineLoad> reading_;
};

}  // namespace stepladder
