// Judges one change in a series of changes: whether its runs are better than those of what was kept last, when to run
// either once more, and how strong the evidence has to be so that few of all kept changes are false. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/analysis/verdict/run_spread.h"
#include "storage/records.h"

namespace stepladder {

// A mean difference of runs. `variance`: its variance, in variances of one run. `noise`: an estimate of the latter.
struct GainEvidence {
  double gain = missing;  // above 0 is better
  double variance = missing;
  RunSpread noise;
};

// The evidence that the gain is above 0, as an e-value: its mean is at most 1 if there is no gain, whenever one stops
// to look. It is the likelihood ratio of Student's statistic between a gain whose size, in standard deviations of a
// run, has a mixture of half-normal priors, and none (Pérez-Ortiz, Lardy, de Heide and Grünwald, "E-statistics, group
// invariance and anytime-valid testing", 2024). 0 without noise.
double e_value(const GainEvidence& evidence);

// The interval that holds whenever one looks: where the two-sided mixture's e-value is below 1 / error.
Interval anytime_interval(const GainEvidence& evidence, double error = 0.05);

// The gain less what a noisy one is overrated by because it was picked: its variance over itself (James and Stein 1961,
// positive part). Clear gains stay as they are.
double shrunk_gain(const GainEvidence& evidence);

enum class FalseKeeps {
  few,   // at most 5 % of all kept changes are false, in the mean over series (e-LOND)
  none,  // no kept change of a series is false, with 95 %
};

// The e-value that the change of this number (from 1) needs, after `kept` others were kept. e-LOND: Xu and Ramdas,
// "Online multiple testing with e-values", 2024.
double needed_e_value(std::size_t number, std::size_t kept, FalseKeeps rule);

// Values of runs: higher is better, and differences are what counts (logarithms of throughputs, losses below 0).
struct TryRuns {
  std::vector<double> kept;     // earlier runs of the state that is kept now; at least one
  std::vector<double> recent;   // earlier runs of it and of changes that did nothing, in the order of running
  RunSpread noise;              // of all earlier runs, each around the mean of its state
  std::vector<double> changed;  // runs of the change, and the kept state's beside them, in turns
  std::vector<double> beside;
};

enum class TryStep { run_changed, run_kept, over };
enum class TryEnd {
  none,           // not over
  kept,           // better, by enough evidence
  worse,          // clearly below the kept state
  no_sign,        // its first run shows no sign of a gain
  futile,         // as it looks now, the allowed rounds wouldn't be enough
  rounds_over,    // they weren't
  equal_repeats,  // all runs of a state are equal to the bit, so nobody knows the noise
};

struct TryOpinion {
  TryStep step = TryStep::over;
  TryEnd end = TryEnd::none;
  double gain = missing;  // shrunk if it is kept
  Interval ci95;          // of the gain
  double e_value = missing;
  std::int64_t needed_runs = 0;  // inconclusive: about how many more runs of each would settle it; 0: not known
};

inline constexpr std::size_t most_try_rounds = 20;

// What to do next, or the answer. `threshold`: see needed_e_value.
TryOpinion judge_try(const TryRuns& runs, double threshold, std::size_t most_rounds = most_try_rounds);

}  // namespace stepladder
