// What one run bought over another: a factor of throughput, and whether the loss stayed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/records.h"
#include "storage/summary.h"

namespace stepladder {

enum class LossVerdict { same, better, worse, diverged, not_comparable };
std::string_view to_string(LossVerdict verdict);  // "not-comparable"

struct LossParity {
  LossVerdict verdict = LossVerdict::not_comparable;
  double max_gap = missing;  // largest |loss - base loss| at an equal step; missing where no step is shared,
                             // infinite where the run diverged
  std::int64_t at_step = 0;  // where it was; the first such step where the run diverged
  double tail_gap =
      missing;  // mean (loss - base loss) over the last quarter of the shared steps; missing where diverged
};

// Loss against loss at equal steps. not_comparable where tokens per step differ (or either is not known) or no step
// is shared; diverged where the loss is not finite and the base's is; else by tail_gap: within 0.02 nats is `same`
// (the tolerance given to bf16 against fp32 over ten steps).
LossParity loss_parity(const Series& base, std::int64_t base_tokens_per_step, const Series& run,
                       std::int64_t tokens_per_step);

// Ratio of steady tokens/s, or the inverse ratio of dt where one of them has none; missing where there is nothing to
// divide.
double speedup(const Summary& base, const Summary& run);

}  // namespace stepladder
