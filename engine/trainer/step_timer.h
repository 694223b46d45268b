// The one clock by which steps are measured. It is never read before the device has finished.
#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <optional>

#include "storage/records.h"

namespace stepladder {

// CUDA: an event before and after the step on its stream, and one wait for the second. CPU: its work is done when the
// call returns, so a steady clock tells. MPS: the queue is drained, then a steady clock is read.
class StepTimer {
 public:
  explicit StepTimer(c10::Device device);

  void start();
  double stop_ms();  // waits for the device; since start
  Sync sync() const { return events_ ? Sync::event : Sync::device; }

 private:
  struct Events {
    c10::Event before, after;
  };
  void drain() const;

  c10::Device device_;
  std::optional<Events> events_;  // CUDA only
  std::chrono::steady_clock::time_point started_{};
};

}  // namespace stepladder
