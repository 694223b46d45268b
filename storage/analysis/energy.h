// A run's energy, from the power that was sampled during training.
#pragma once

#include <cstdint>
#include <span>

#include "storage/records.h"

namespace stepladder {

struct Energy {
  double wh = missing;            // of the whole run, as far as it was sampled
  double seconds = 0;             // that the value above covers
  double mean_power_w = missing;  // over the steady steps
  double steady_seconds = 0;      // that the value above covers
  double joules_per_token = missing;
  double tokens_per_s_per_w = missing;  // its inverse: W = J/s
};

inline constexpr double longest_gap_s = 5;  // between two samples, ten times as long as usual

// Power between two samples is a straight line (the trapezoidal rule); a gap longer than `longest_gap_s` (the program
// was paused, or another one resumed the run) isn't counted. Samples without a power are skipped. `metrics` in the
// order of time; steady are those after `last_warmup_step` was done; `tokens_per_s` is the run's steady figure. Covers
// one GPU, the one whose power NVML reported.
Energy energy_of(std::span<const SystemMetrics> metrics, std::int64_t last_warmup_step, double tokens_per_s);

}  // namespace stepladder
