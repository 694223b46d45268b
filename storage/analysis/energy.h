// What a run's energy came to, from the power that was looked at beside the training.
#pragma once

#include <cstdint>
#include <span>

#include "storage/records.h"

namespace stepladder {

struct Energy {
  double wh = missing;            // of the whole run, as far as it was looked at
  double seconds = 0;             // that the above stands for
  double mean_power_w = missing;  // over the steady steps
  double steady_seconds = 0;      // that the above stands for
  double joules_per_token = missing;
  double tokens_per_s_per_w = missing;  // its inverse: W = J/s
};

inline constexpr double longest_gap_s = 5;  // between two looks, ten times as long as usual

// Power between two looks is a straight line (the trapezoidal rule); what lies between two looks further apart than
// `longest_gap_s` (the program was paused, or another one resumed the run) was not looked at and counts as nothing.
// Looks without a power are passed over. `lanes` in the order of time; steady are those after `last_warmup_step` was
// done; `tokens_per_s` is the run's steady figure. Of one GPU: the one that NVML was asked for.
Energy energy_of(std::span<const SystemMetrics> lanes, std::int64_t last_warmup_step, double tokens_per_s);

}  // namespace stepladder
