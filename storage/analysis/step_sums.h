// The doubts about a gain in the medians of the steps: a step in twenty that takes eight times as long hides from a
// median.
#pragma once

#include <optional>
#include <span>

#include "storage/analysis/plausibility.h"

namespace stepladder {

// The figures of a run that its median is doubted by; the series may be an excerpt.
struct RunTimes {
  const Run& run;
  const Summary& summary;
  const Series& series;
};

// The flag of a factor between the medians of which less than a third is left, and 5 % are lost, by the mean of all
// steady steps; of one near 1, if 5 % are lost. Evaluations don't count where the baseline's times hold them, unless
// the runs evaluate more often; nor does the slowest hundredth (checkpoints, a disturbed step). Each mean is taken at
// the end of its standard error that doubts less. Or by the mean of all steps but the slowest one of each run. Nullopt:
// it is none, as between runs that were launched here.
std::optional<Flag> doubt_sums(double factor, std::span<const RunTimes> base, std::span<const RunTimes> runs);

// The flag of a gain of `factor` in the medians of which less than a third is left, and 5 % are lost, if a warm-up of
// over a quarter of the steps counts, at one end of runs whose steps drift apart, or by the wall clocks of both; or if
// the run's log times fewer of its steps. Nullopt: it is none. Of two runs that were launched here it is none: our own
// timer took each step, and what disturbs them is watched. Nor is it one by the wall clock if one was.
std::optional<Flag> doubt_median(double factor, const RunTimes& base, const RunTimes& run);

}  // namespace stepladder
