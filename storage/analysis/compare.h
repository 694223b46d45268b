// Compares two runs: a factor of throughput with its interval, and loss parity. storage/analysis/judgement.h turns
// these into the verdicts that people see.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

enum class LossVerdict { same, better, worse, diverged, not_comparable };
std::string_view to_string(LossVerdict verdict);  // "not-comparable"

struct LossParity {
  LossVerdict verdict = LossVerdict::not_comparable;
  double max_gap = missing;   // largest |loss - base loss| at an equal step; missing if no step is shared,
                              // infinite if the run diverged
  std::int64_t at_step = 0;   // of max_gap; the first such step if the run diverged
  double tail_gap = missing;  // mean (loss - base loss) over the last quarter of the shared steps; missing if diverged
};

inline constexpr double loss_tolerance_nats = 0.02;  // tolerance of bf16 against fp32 over ten steps

// Compares the losses at equal steps. not_comparable if tokens per step differ (or either is unknown) or no step is
// shared. diverged if only the base's loss is finite, or if the loss ends above its start while the base's has fallen.
// Otherwise by tail_gap: within `band` is `same`.
LossParity loss_parity(const Series& base, std::int64_t base_tokens_per_step, const Series& run,
                       std::int64_t tokens_per_step, double band = loss_tolerance_nats);

// The same; also not_comparable if both recipes name their data or vocabulary and these differ.
LossParity loss_parity(const Run& base_run, const Series& base, const Run& run, const Series& series,
                       double band = loss_tolerance_nats);

// How far the final losses of two runs of one rung may differ: the 95 % range of the differences between the first
// repeat and each other one, and at least loss_tolerance_nats, which is the result for fewer than two repeats.
double loss_band(std::span<const Series* const> repeats);

// Where a run's loss reached `target`: validation loss if there is any, else the median of the last five training
// losses. `step` 0: never.
struct TargetReached {
  std::int64_t step = 0;
  double seconds = missing;  // of the steps up to and including this one; missing if one of them has no time
  double tokens = missing;
  bool by_validation = false;  // the loss that reached it, or would have to
};
TargetReached reach(const Series& series, std::int64_t tokens_per_step, double target_loss);

// Ratio of steady tokens/s, or the inverse ratio of dt if a run has no tokens/s; missing if neither is known.
double speedup(const Summary& base, const Summary& run);

// Steps until compiling or capturing before the first step pays off: the first n with setup_ms <= n (dt_before -
// dt_after). missing if it never does or a figure is unknown.
double break_even_steps(double setup_ms, double dt_before_ms, double dt_after_ms);

enum class Verdict { faster, same, slower, cannot_tell };
std::string_view to_string(Verdict verdict);  // "cannot-tell"

inline constexpr double default_noise_floor = 0.01;

// A factor, its interval and the verdict that follows from them.
struct SpeedUp {
  double factor = missing;
  Interval ci95;
  Verdict verdict = Verdict::cannot_tell;
};

// One side of a comparison.
struct Sample {
  MedianSample steps;           // of one run's steady step times (the first repeat's)
  std::vector<double> repeats;  // figures (tokens/s or ms) of all runs of the rung; fewer than two: not repeated
  std::size_t averaged = 1;     // how many of them the compared figure is the median of
};

// An interval whose ends differ by more than this factor is dropped, since it carries no information.
inline constexpr double widest_interval = 1000;

// 95 % interval of `factor`, and the verdict. One run a side: from the resampled medians of its steps. With repeats on
// either side: also from the spread between these runs (Student's t with the pooled variance of the logarithms), and
// the wider interval is used. faster: the factor is beyond the noise floor and all of the interval beyond half of it;
// slower likewise; same: all of the interval is within the noise floor; otherwise, and without an interval,
// cannot_tell.
SpeedUp judge_speedup(double factor, const Sample& base, const Sample& run, double noise_floor = default_noise_floor);

// 95 % interval of a sample's own step time, in multiples of it (0.98 to 1.02): from the resampled medians of one
// run's steps and, with repeats, from the spread between them by the same rule; the wider interval is used.
Interval own_interval(const Sample& sample);
Verdict verdict_of(double factor, const Interval& ci95, double noise_floor = default_noise_floor);

}  // namespace stepladder
