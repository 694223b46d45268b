#include "engine/metrics_sampler.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "engine/system_metrics.h"

namespace stepladder {

MetricsSampler::MetricsSampler(RunId run, int gpu_index, std::function<void(const RunEvent&)> listener)
    : thread_([this, run, gpu_index, listener = std::move(listener)](const std::stop_token& ending) {
        SystemMonitor monitor(gpu_index);
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        while (true) {
          never.wait_for(lock, ending, std::chrono::milliseconds(500), [] { return false; });
          if (ending.stop_requested()) return;
          SystemMetrics sample = monitor.sample();
          sample.run = run;
          sample.step = step_;
          listener(sample);
        }
      }) {}

}  // namespace stepladder
