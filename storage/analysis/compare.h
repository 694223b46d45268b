// Compares two runs: a factor of throughput with its interval and verdict. storage/analysis/judgement.h turns it into
// the verdicts that people see.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/analysis/summary.h"
#include "storage/analysis/verdict/loss_parity.h"
#include "storage/analysis/verdict/run_spread.h"
#include "storage/records.h"

namespace stepladder {

// The point at which a run's loss reached `target`: the first of two evaluations in a row if there are validation
// losses, else the median of the last five training losses. `step` 0: never.
struct TargetReached {
  std::int64_t step = 0;
  double seconds = missing;  // training_progress.h: up to and including this step
  double tokens = missing;
  bool by_validation = false;  // the loss that reached it, or would have to
  bool once = false;           // by the last evaluation alone, which may be a lucky one
};
TargetReached reach(const Run& run, const Series& series, double target_loss);

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
  SpreadFrom spread_from = SpreadFrom::unknown;  // where the interval's part for the spread between runs comes from
  std::size_t runs = 0;                          // of the side that has fewer
  std::int64_t needed_runs = 0;  // cannot_tell: about how many more of each side would settle it; 0: not known, or none
  double p = missing;            // of a factor this far beyond half of the noise floor, if it is not beyond it
  std::size_t compared = 1;      // verdicts that hold together; more than one may have withdrawn this one
  bool is_open = false;          // cannot_tell until the others of its family are judged: it may hold with them or not
};

// One side of a comparison.
struct Sample {
  MedianSample steps;           // of one run's steady step times (the first repeat's)
  std::vector<double> repeats;  // figures (tokens/s or ms) of all runs of the rung, in their order
  std::size_t averaged = 1;     // how many of them the compared figure is the median of
};

// An interval whose ends differ by more than this factor is dropped, since it carries no information.
inline constexpr double widest_interval = 1000;

// Looks at one question after more and more runs of each side, of which there are at most `most`: after `first`, then
// after each further one up to five, then after 1.4 times as many, and after `most`. Each look gets a share of the
// error of 5 % that grows with its number of runs, so that the interval holds at all of them together (Bonferroni;
// docs/measuring.md says why).
struct Looks {
  Looks() = default;  // one look, with an interval of 95 %
  Looks(std::size_t most, std::size_t first = 2);
  bool is_at(std::size_t number) const;       // runs
  double error_at(std::size_t number) const;  // of the last look up to that number, else of the first

  std::vector<std::size_t> runs;  // ascending; of each side; empty: one look
  bool in_pairs = true;           // both sides were run in turns
};

// Run::looks_up_to of a repeat that somebody added to a rung.
inline constexpr std::int64_t added_after_a_look = -1;

struct SpeedUpRules {
  double noise_floor = default_noise_floor;
  RunSpread known;  // between runs, for a side with fewer than two
  Looks looks = {};
};

// 95 % interval of `factor`, and the verdict.
// Two runs a side or more: from the resampled medians of a run's steps or from the spread between the runs (Student's t
// with the pooled variance of the logarithms; with looks, of the differences of pairs in their order), whichever is
// wider. Fewer: from the steps and from the spread that is known, together (Student's t with its degrees of freedom).
// The error that rounding may have caused on either side is added (MedianSample::resolution).
// faster: the factor is beyond the noise floor and all of the interval beyond half of it; slower likewise; same: all of
// the interval is within the noise floor; otherwise, and without an interval, cannot_tell.
SpeedUp judge_speedup(double factor, const Sample& base, const Sample& run, const SpeedUpRules& rules = {});

// The smallest factor beyond 1, minus 1, that `runs` runs of each side show as faster in 95 % of cases, where runs of
// one program differ as in `known`: 0.021. Never smaller than with more runs. Missing if nothing is known.
double smallest_gain(const RunSpread& known, std::size_t runs, double noise_floor = default_noise_floor);

// Withdraws `faster` and `slower` where they hold alone but not together: Holm (1979), "A simple sequentially rejective
// multiple test procedure". Intervals stay those of each comparison by itself. `unjudged` more comparisons belong to
// the family but aren't known: a verdict stays only if it holds whatever they turn out to be, is withdrawn if it falls
// whatever they are, and is open otherwise, so that none is ever another than the whole family's.
void hold_together(std::span<SpeedUp* const> family, std::size_t unjudged = 0);

// 95 % interval of a sample's own step time, in multiples of it (0.98 to 1.02): from the resampled medians of one
// run's steps and from the spread between runs, by the same rules; unknown if it is wider than widest_interval.
Interval own_interval(const Sample& sample, const RunSpread& known = {});
Verdict verdict_of(double factor, const Interval& ci95, double noise_floor = default_noise_floor);

}  // namespace stepladder
