// Splits a gain if the batch changed too: the part of the change itself, and the part of the bigger batch.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

// One run's steady step.
struct BatchPoint {
  RunId run = 0;
  double tokens = missing;  // per step
  double dt_ms = missing;
};

// speedup = tokens_ratio / step_time_ratio is exact, and equal_batch x bigger_batch = speedup always. Two runs cannot
// separate the parts: a step's time is modelled as t(B) = a + b B, and two runs don't determine the run's a and b. A
// third run with the same stage at another batch does. Without one, low and high are bounds: with a fixed cost only (b
// = 0), a step at the base's batch would take as long; with a proportional cost only (a = 0), its time would shrink
// with the batch.
struct BatchSplit {
  double tokens_ratio = missing;
  double step_time_ratio = missing;
  double equal_batch_low = missing;  // the factor at equal batch
  double equal_batch_high = missing;
  double bigger_batch_low = missing;
  double bigger_batch_high = missing;
  std::optional<RunId> third;  // the run that determined it; then low is high
  std::string sentence;        // with the arithmetic
};

// The side whose stage the third run has, at another batch.
enum class ThirdIs { like_base, like_run };
struct ThirdPoint {
  BatchPoint point;
  ThirdIs is = ThirdIs::like_run;
};

// nullopt if the tokens per step are equal or a figure is unknown.
std::optional<BatchSplit> split_gain(const BatchPoint& base, const BatchPoint& run,
                                     const std::optional<ThirdPoint>& third = {});

// Finds a third run in the ladder of either: its recipe equals that of the base or the run except for the batch
// (without recipes: stage, precision and hardware are equal). A run at the other side's batch is preferred, since it
// needs no extrapolation.
std::optional<ThirdPoint> third_point(const RunAndSummary& base, const RunAndSummary& run,
                                      std::span<const RunAndSummary> others);

}  // namespace stepladder
