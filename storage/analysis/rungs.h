// A ladder's rungs from its runs: repeats put together, each rung against the one before and against the baseline.
#pragma once

#include <span>
#include <vector>

#include "storage/analysis/compare.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

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
  double speedup = missing;           // 1 for the baseline
  SpeedUp previous_verdict;           // the two factors with their intervals; not filled in for the first rung,
  SpeedUp verdict;                    // nor without intervals
  int loss_against = 0;               // the rung (Run::loss_against) that the loss is held against
  LossParity loss;  // first repeat against that rung's first, within the band of the baseline's repeats
};

enum class Intervals { yes, no };

// By rung. Runs without steps take part with missing figures. Intervals cost up to ten milliseconds a run; without
// them it is quick enough for a ladder that is still running. `baseline` is the rung that speed-ups are over, and that
// losses are held against where a rung names no other below it; -1, or a rung that is not there: the first.
std::vector<RungSummary> summarise_rungs(std::span<const MeasuredRun> runs, Intervals intervals = Intervals::yes,
                                         int baseline = -1);

// What a run and its repeats (of which it is one, or none) say of the certainty of its figure alone, `averaged` being
// 1, or of the median of all.
Sample sample_of(const MeasuredRun& run, std::span<const MeasuredRun> repeats, std::size_t averaged);

}  // namespace stepladder
