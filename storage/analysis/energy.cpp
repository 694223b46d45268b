#include "storage/analysis/energy.h"

namespace stepladder {

Energy energy_of(std::span<const SystemMetrics> metrics, std::int64_t last_warmup_step, double tokens_per_s) {
  Energy energy;
  double joules = 0;
  double steady_joules = 0;
  const SystemMetrics* before = nullptr;
  for (const SystemMetrics& sample : metrics) {
    if (!(sample.gpu_power_w >= 0) || is_missing(sample.at)) continue;
    const double seconds = before ? sample.at - before->at : 0;
    if (seconds > 0 && seconds <= longest_gap_s) {
      const double between = seconds * (before->gpu_power_w + sample.gpu_power_w) / 2;
      joules += between;
      energy.seconds += seconds;
      if (before->step >= last_warmup_step) {
        steady_joules += between;
        energy.steady_seconds += seconds;
      }
    }
    before = &sample;
  }
  if (energy.seconds > 0) energy.wh = joules / 3600;
  if (energy.steady_seconds <= 0) return energy;
  energy.mean_power_w = steady_joules / energy.steady_seconds;
  if (!(tokens_per_s > 0) || !(energy.mean_power_w > 0)) return energy;
  energy.joules_per_token = energy.mean_power_w / tokens_per_s;
  energy.tokens_per_s_per_w = tokens_per_s / energy.mean_power_w;
  return energy;
}

}  // namespace stepladder
