#include "engine/metrics_sampler.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "engine/recipe.h"
#include "engine/system_metrics.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds between_samples{500};
// A last sample over less time than this would say little: the kernel counts in hundredths of a second.
constexpr double shortest_sample_s = 0.2;

struct Needs {
  int cores = 0;  // 0: not known
  int processes = 1;
};

Needs needs_of(const RunStarted& started) {
  try {
    const Recipe recipe = recipe_from_json(started.recipe);
    return {needed_cores(started.device, recipe.threads, recipe.nproc), recipe.nproc};
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

int needed_cores(const std::string& device, int threads, int processes) {
  return device == "cpu" ? threads : processes;
}

MetricsSampler::MetricsSampler(const RunStarted& started, std::function<void(const RunEvent&)> listener)
    : thread_([this, run = started.run, gpu_index = started.device == "cuda" ? 0 : -1, needs = needs_of(started),
               listener = std::move(listener)](const std::stop_token& ending) {
        leave_run_threads("sampler");
        SystemMonitor monitor(gpu_index, SystemMonitor::usual_nvml_library,
                              needs.processes > 1 ? run_helpers() : std::vector<pid_t>{});
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        for (double before = unix_now(); !ending.stop_requested();) {
          never.wait_for(lock, ending, between_samples, [] { return false; });
          if (ending.stop_requested() && unix_now() - before < shortest_sample_s) return;
          SystemMetrics sample = monitor.sample();
          before = sample.at;
          sample.run = run;
          sample.step = step_;
          sample.contention.needed_cores = needs.cores;
          listener(sample);
        }
      }) {}

}  // namespace stepladder
