// Steps that took far longer than their neighbours, with the likely reason.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct SlowStep {
  std::int64_t step = 0;
  double dt_ms = missing;
  std::string why;  // "3.1 times the median; validation ran here"
};

inline constexpr double slow_factor = 2.5;  // times the median

// Returns at most `most` of them, the slowest first. `metrics` show whether the device was throttled; `saved` are the
// steps after which a checkpoint was written.
std::vector<SlowStep> slow_steps(const Series& series, std::span<const SystemMetrics> metrics,
                                 std::span<const std::int64_t> saved, std::size_t most = 40);

}  // namespace stepladder
