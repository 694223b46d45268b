// Finds where a run's step times become steady, and the outliers afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// How many of the first step times belong to warm-up; at least `fixed_minimum`, at most half of them beyond it.
//
// MSER-5 (White 1997, "An effective truncation heuristic for bias reduction in simulation output"): of all places to
// cut, the one that leaves the smallest standard error, on batches of five steps, here on their medians (so that a
// single slow step cuts nothing) around a straight line (so that a slow drift is not taken for warm-up). The cut
// is used only where the steps before it were slower than what follows by 1 % and by three times the batches' own
// scatter; then it is moved to the very step at which two levels fit best. Without a cut, up to five single steps in
// front that stand out are left out. Values that are not positive are
// skipped.
std::size_t warmup_end(std::span<const double> dt_ms, std::size_t fixed_minimum);

// The least step time of an outlier: beyond the median by 6 times its distance to the upper quartile (four standard
// deviations of Gaussian noise) and by 5 %; a pause takes over 20 times the median and over a second.
double spike_limit(double median_ms, double p75_ms);
double pause_limit(double median_ms);

// Steady steps beyond that. They stay in every figure; a median hardly moves for them.
struct Spikes {
  std::vector<std::size_t> at;  // places in the series, ascending
  std::size_t pauses = 0;       // of these
  std::size_t period = 0;       // steps between regular ones (validation, checkpoints); 0: not regular
  std::size_t regular = 0;      // of these, those that come at that period
  bool validation = false;      // regular ones are where val_loss was taken
};

// Looks at steps from `first_steady` on.
Spikes find_spikes(const Series& series, std::size_t first_steady);

}  // namespace stepladder
