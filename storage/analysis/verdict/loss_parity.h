// Loss parity: the loss difference at equal steps, its interval and the verdict whether a change left the loss as it
// was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "storage/analysis/statistics.h"
#include "storage/analysis/verdict/run_spread.h"
#include "storage/records.h"

namespace stepladder {

enum class LossVerdict { same, better, worse, inconclusive, diverged, not_comparable };
std::string_view to_string(LossVerdict verdict);  // "not-comparable"

inline constexpr double loss_tolerance_nats = 0.02;  // tolerance of bf16 against fp32 over ten steps

struct LossParity {
  LossVerdict verdict = LossVerdict::not_comparable;
  double max_gap = missing;   // largest |loss - base loss| at an equal step; missing if no step is shared,
                              // infinite if the run diverged
  std::int64_t at_step = 0;   // of max_gap; the first such step if the run diverged
  double tail_gap = missing;  // mean (loss - base loss) over the last quarter of the shared steps; missing if diverged
  Interval ci95;              // of tail_gap, in nats
  double tolerance = loss_tolerance_nats;
  bool by_validation = false;  // the gaps are of the validation loss, which both have at equal steps near the end
  std::size_t runs = 1;        // pairs of runs that the gap is the mean of
  std::string doubt;           // inconclusive: why an equal or a lower loss shows nothing; empty: it isn't that
  std::int64_t needed_runs =
      0;  // inconclusive: about how many more of each side would settle it; 0: not known, or none
};

// A run with its steps. Both are owned by the caller.
struct LossRun {
  const Run* run = nullptr;
  const Series* series = nullptr;
};

struct LossRules {
  double tolerance = loss_tolerance_nats;
  RunSpread known = {};  // of the mean loss, between runs that differ in their seed; unknown: no part of the interval
};

// Compares runs in pairs, by their order; both have at least one. The gap is the mean over the pairs; a step far from
// the others counts as the farthest of these, so that a spike decides nothing.
//
// Its interval: from blocks of neighbouring steps, from the last digit that an import prints, and from the spread
// between runs: that of the pairs from three of them on, if they aren't copies, else the known one. Where both began
// with the same weights and batches (the first five losses agree), only a tenth of the known one counts.
//
// same: all of the interval is within the tolerance; better, worse: all of it beyond; else inconclusive. Neither same
// nor better, but inconclusive, with the `doubt`, if the run's losses may be of another kind: only the base was
// validated, the validation differs by its settings or by far more than the training, the schedules differ in length,
// the loss is 0 or less, the training loss ends early, or rises where the validation doesn't; of an import, the
// training loss never changes, or the deciding one begins far lower or is the base's times ln 2. diverged: in any pair
// only the base's loss is finite, or the loss ends above its start while the base's has fallen. not_comparable: the
// recipes name other data, vocabularies or context lengths, or one overfits, tokens per step differ, or may differ
// (have_equal_steps), or no step is shared.
LossParity loss_parity(std::span<const LossRun> base, std::span<const LossRun> runs, const LossRules& rules = {});

// Why nothing follows from a difference of the two in this metric: it is a loss by its name, and loss_parity wouldn't
// compare them, or would doubt an equal or a lower one. Empty: it follows.
std::string metric_doubt(std::string_view name, const LossRun& base, const LossRun& run);

// Whether a step of both trains on as many tokens. Where the tokens are unknown: whether their recipes name no other
// batch or length, and the last step or the model's shape agrees.
bool have_equal_steps(const Run& base, const Series& base_series, const Run& run, const Series& series);

// Between repeats that differ in their seed. Unknown if two began alike, or there are fewer than two.
RunSpread loss_spread(std::span<const LossRun> repeats);

}  // namespace stepladder
