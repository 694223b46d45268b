// Arithmetic of comparing two runs: a factor of throughput with its interval, and loss parity. Judgements for people
// are made of these by storage/analysis/judgement.h.
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
  double max_gap = missing;  // largest |loss - base loss| at an equal step; missing where no step is shared,
                             // infinite where the run diverged
  std::int64_t at_step = 0;  // where it was; the first such step where the run diverged
  double tail_gap =
      missing;  // mean (loss - base loss) over the last quarter of the shared steps; missing where diverged
};

inline constexpr double loss_tolerance_nats = 0.02;  // tolerance of bf16 against fp32 over ten steps

// Loss against loss at equal steps. not_comparable where tokens per step differ (or either is not known) or no step
// is shared. diverged where the loss is not finite and the base's is, or where it ends above where it began while the
// base's has fallen. Else by tail_gap: within `band` is `same`.
LossParity loss_parity(const Series& base, std::int64_t base_tokens_per_step, const Series& run,
                       std::int64_t tokens_per_step, double band = loss_tolerance_nats);

// The same, and not_comparable where both recipes name their data or vocabulary and these differ.
LossParity loss_parity(const Run& base_run, const Series& base, const Run& run, const Series& series,
                       double band = loss_tolerance_nats);

// How far the final losses of two runs of one rung may differ: the 95 % range of a difference between repeats, from
// these (first against each), at least the tolerance, which is the answer for fewer than two.
double loss_band(std::span<const Series* const> repeats);

// Where a run's loss reached `target`: validation loss where there is any, else the median of the last five training
// losses. `step` 0: never.
struct TargetReached {
  std::int64_t step = 0;
  double seconds = missing;  // of steps, up to and with this one; missing where one of them has no time
  double tokens = missing;
};
TargetReached reach(const Series& series, std::int64_t tokens_per_step, double target_loss);

// Ratio of steady tokens/s, or the inverse ratio of dt where one of them has none; missing where there is nothing to
// divide.
double speedup(const Summary& base, const Summary& run);

// Compiling or capturing before the first step pays back after so many steps: the first n for which
// setup_ms <= n (dt_before - dt_after). missing where it never does, or a figure is not known.
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

// 95 % interval of `factor`, and the verdict. One run a side: from the resampled medians of its steps. With repeats on
// either side: also from the spread between these runs (Student's t with the pooled variance of the logarithms), and
// the wider of the two counts. faster: the factor is beyond the noise floor and all of the interval beyond half of it;
// slower likewise; same: all of the interval is within the noise floor; else cannot_tell, as where there is no
// interval.
// An interval whose ends differ by more than this factor says nothing and is dropped.
inline constexpr double widest_interval = 1000;
SpeedUp judge_speedup(double factor, const Sample& base, const Sample& run, double noise_floor = default_noise_floor);

// 95 % interval of a sample's own step time, in multiples of it (0.98 to 1.02): from the resampled medians of one
// run's steps and, with repeats, from the spread between them by the same rule; the wider counts.
Interval own_interval(const Sample& sample);
Verdict verdict_of(double factor, const Interval& ci95, double noise_floor = default_noise_floor);

}  // namespace stepladder
