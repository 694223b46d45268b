// Samples the machine twice a second while a run trains, on its own thread.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "storage/records.h"

namespace stepladder {

class MetricsSampler {
 public:
  // `listener` is called on the sampler's thread until the destructor returns. `gpu_index`: -1 for none.
  MetricsSampler(RunId run, int gpu_index, std::function<void(const RunEvent&)> listener);
  MetricsSampler(const MetricsSampler&) = delete;
  MetricsSampler& operator=(const MetricsSampler&) = delete;

  // Any thread. The next samples get this step.
  void step_done(std::int64_t step) { step_ = step; }

 private:
  std::atomic<std::int64_t> step_ = 0;
  std::jthread thread_;
};

}  // namespace stepladder
