// Reads how busy other programs keep this machine, on another thread: it takes milliseconds on a busy one. UI thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "app/host/machine_load.h"
#include "app/job.h"

namespace stepladder {

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
