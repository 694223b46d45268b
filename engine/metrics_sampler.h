// Samples the machine twice a second while a run trains, and once more when it ends, on its own thread.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "storage/records.h"

namespace stepladder {

class MetricsSampler {
 public:
  // `listener` is called on the sampler's thread until the destructor returns. The device and the recipe say what the
  // run needs.
  MetricsSampler(const RunStarted& started, std::function<void(const RunEvent&)> listener);
  MetricsSampler(const MetricsSampler&) = delete;
  MetricsSampler& operator=(const MetricsSampler&) = delete;

  // Any thread. The next samples get this step.
  void step_done(std::int64_t step) { step_ = step; }

 private:
  std::atomic<std::int64_t> step_ = 0;
  std::jthread thread_;
};

// The cores that a run needs: of a CPU all its threads', of a GPU one for each process.
int needed_cores(const std::string& device, int threads, int processes);

}  // namespace stepladder
