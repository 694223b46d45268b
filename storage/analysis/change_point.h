// Finds where a run's step times become steady, and the outliers afterwards.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// Returns how many of the first step times belong to warm-up: at least `fixed_minimum`, and at most half of those after
// it.
//
// MSER-5 (White 1997, "An effective truncation heuristic for bias reduction in simulation output"): cuts where the
// standard error of the rest is smallest, on batches of five steps. Here it uses their medians (a single slow step
// causes no cut) around a straight line (a slow drift isn't warm-up). The cut is used only if the steps before it were
// slower than the rest by 1 % and by three times the batches' own scatter; it is then moved to the step at which two
// levels fit best. Without a cut, up to five slow steps at the start are excluded. Values that are not positive are
// skipped.
std::size_t warmup_end(std::span<const double> dt_ms, std::size_t fixed_minimum);

// Returns the shortest step time that is an outlier: above the median by 6 times its distance to the upper quartile
// (four standard deviations of Gaussian noise) and by 5 %. A pause takes over 20 times the median and over a second.
double spike_limit(double median_ms, double p75_ms);
double pause_limit(double median_ms);

// Whether the step's time may hold an evaluation: its own, or that of the step before.
bool is_beside_evaluation(const Series& series, std::size_t place);

// Steady steps above spike_limit. They stay in every figure, since they hardly move a median.
struct Spikes {
  std::vector<std::size_t> at;  // places in the series, ascending
  std::size_t pauses = 0;       // of these
  std::size_t period = 0;       // steps between regular ones (validation, checkpoints); 0: not regular
  std::size_t regular = 0;      // of these, how many follow that period
  bool validation = false;      // the regular ones are the steps with a val_loss
};

// Searches the steps from `first_steady` on.
Spikes find_spikes(const Series& series, std::size_t first_steady);

}  // namespace stepladder
