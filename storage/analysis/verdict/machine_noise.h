// The noise of a machine by equal runs on it: within a run, between runs, and its drift.
#pragma once

#include <cstddef>
#include <span>

#include "storage/analysis/statistics.h"
#include "storage/analysis/summary.h"
#include "storage/analysis/verdict/run_spread.h"

namespace stepladder {

struct MachineNoise {
  std::size_t runs = 0;       // finished, with a step time
  std::size_t disturbed = 0;  // of these, by other programs; they count like the others
  double seconds = missing;   // from the start of the first to the end of the last

  double within = missing;  // standard deviation of a step, of its run's median: the quartiles' distance over 1.349
  RunSpread between;        // of the runs' medians
  Interval between_ci95;    // of its standard deviation
  double drift = missing;   // change of the step time from the first run to the last, by least squares
  Interval drift_ci95;      // by Student's t
};

// `runs`: equal runs, in the order in which they ran. Figures that need more runs stay missing: between runs 2, drift
// 4.
MachineNoise noise_of(std::span<const RunAndSummary> runs);

}  // namespace stepladder
