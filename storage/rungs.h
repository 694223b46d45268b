// A ladder's rungs from its runs: repeats put together, each rung against the one before and against the baseline.
#pragma once

#include <span>
#include <vector>

#include "storage/compare.h"
#include "storage/records.h"
#include "storage/summary.h"

namespace stepladder {

// One run with what was computed from its steps; all three are owned by the caller.
struct MeasuredRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
  const Series* series = nullptr;
};

struct RungSummary {
  int rung = 0;
  std::vector<const Run*> runs;       // its repeats, in order
  double tokens_per_s = missing;      // median over repeats of the steady median
  double low = missing;               // one run: the quartiles of its steady steps; several: the slowest
  double high = missing;              // and the fastest run
  double against_previous = missing;  // factors of throughput; missing for the first rung
  double speedup = missing;           // 1 for the first rung
  LossParity loss;                    // first repeat against the baseline's first
};

// By rung. Runs without steps take part with missing figures.
std::vector<RungSummary> summarise_rungs(std::span<const MeasuredRun> runs);

}  // namespace stepladder
