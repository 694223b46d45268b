// The one clock by which steps are measured. It is never read before the device has finished.
#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// CUDA: events before, within and after the step on its stream, and one wait for the last. CPU: its work is done when
// the call returns, so a steady clock is exact. MPS: the queue is drained, then a steady clock is read; marks within a
// step would drain it too, so there aren't any.
class StepTimer {
 public:
  explicit StepTimer(c10::Device device);

  void start();
  // Adds the milliseconds since the start or the previous mark to that part: parts.*part. On CUDA, time in which the
  // stream was idle counts as well.
  void mark(double StepParts::*part);
  double stop_ms();         // waits for the device; since start
  StepParts parts() const;  // of the last step; `missing` for parts that were not marked

  Sync sync() const { return device_.is_cuda() ? Sync::event : Sync::device; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Mark {
    double StepParts::*part;
    Clock::time_point at{};
    std::size_t event = 0;
  };
  std::size_t record_event();
  double ms_between(const Mark& from, const Mark& to) const;
  void drain() const;

  c10::Device device_;
  std::vector<c10::Event> events_;  // CUDA only; used again in each step
  std::size_t events_used_ = 0;
  std::vector<Mark> marks_;  // the first is the start
};

}  // namespace stepladder
