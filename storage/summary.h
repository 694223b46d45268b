// What a run's steps add up to. Derived from what was measured, never stored as truth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/records.h"

namespace stepladder {

struct Summary {
  std::int64_t steps = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t warmup_steps = 0;  // left out of every figure below that is called steady
  double loss_first = missing;
  double loss_last = missing;
  double loss_min = missing;  // over finite losses
  double val_loss_last = missing;
  double val_loss_min = missing;
  double dt_ms_median = missing;      // steady
  double dt_ms_p25 = missing;         // steady
  double dt_ms_p75 = missing;         // steady
  double tokens_per_s = missing;      // tokens per step / dt_ms_median; missing where tokens or dt are not known
  double tokens_per_s_p25 = missing;  // from dt_ms_p75: the slower quarter
  double tokens_per_s_p75 = missing;
};

// Steps left out at the start: a tenth of the steps, at least 1 and at most 10, none where there are fewer than 4
// steps; `asked` (Run::warmup_steps) overrides it where it is not negative, but always leaves one step.
std::int64_t warmup_steps(std::int64_t steps, std::int64_t asked);

// Steps without a positive, finite dt take no part in the time figures. Where tokens_per_step is not known (0), the
// steps' own tokens serve if they are all alike.
Summary summarise(const Series& series, std::int64_t asked_warmup, std::int64_t tokens_per_step);

// The q-quantile (0..1), linear between order statistics as numpy's default; missing for no values. Reorders its
// argument.
double quantile(std::vector<double>& values, double q);

}  // namespace stepladder
