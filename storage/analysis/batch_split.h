// A gain where the batch changed too: what the change itself brought, and what the bigger batch.
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

// speedup = tokens_ratio / step_time_ratio is exact, and equal_batch x bigger_batch = speedup always. How much is which
// follows from no two runs: a step's time is modelled as t(B) = a + b B, and two runs leave the run's own a and b open.
// A third with the same stage at another batch closes it. Without one these are bounds: if all of the step were fixed
// cost (b = 0) it would be as slow at the base's batch, if all were proportional (a = 0) as much faster as it is
// smaller.
struct BatchSplit {
  double tokens_ratio = missing;
  double step_time_ratio = missing;
  double equal_batch_low = missing;  // what is left of the factor where both have the same batch
  double equal_batch_high = missing;
  double bigger_batch_low = missing;
  double bigger_batch_high = missing;
  std::optional<RunId> third;  // what closed it; then low is high
  std::string sentence;        // with the arithmetic
};

// Which side the third run is a run of: it has that side's stage, and another batch.
enum class ThirdIs { like_base, like_run };
struct ThirdPoint {
  BatchPoint point;
  ThirdIs is = ThirdIs::like_run;
};

// nullopt where the tokens per step are alike, or a figure is not known.
std::optional<BatchSplit> split_gain(const BatchPoint& base, const BatchPoint& run,
                                     const std::optional<ThirdPoint>& third = {});

// Of the runs in either one's ladder, one that does for a third: all of a recipe but the batch is that of the base or
// the run (without recipes: stage, precision and hardware are). One at the other's batch first, since it needs no
// line drawn beyond what was measured.
std::optional<ThirdPoint> third_point(const RunAndSummary& base, const RunAndSummary& run,
                                      std::span<const RunAndSummary> others);

}  // namespace stepladder
