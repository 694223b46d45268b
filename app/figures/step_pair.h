// Two traced steps of a study beside each other: why its best rung is faster than the baseline.
#pragma once

#include <memory>
#include <string>

#include "app/figures/study.h"
#include "app/figures/svg.h"
#include "storage/traces/difference.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

class RunStore;

struct TracedSide {
  std::string label;  // of its rung
  std::int64_t trace = 0;
  StepSlices slices;  // of its median step
  std::string doubt;  // why the trace may not explain the rung's speed; empty: it may
};

struct StepPair {
  TracedSide before, after;
  ProfileDifference difference;  // of the two traces' mean steps, as `profile diff` has it
};

// Pairs the baseline and the best rung if both have traces, else the first and the last rung that have. Null if fewer
// than two have. Reads the store, and throws StorageError.
std::shared_ptr<const StepPair> step_pair(const Study& study, RunStore& store);

// Both steps as icicles on one scale of time, as SVG: kinds have the view Profile's colours, and narrow slices are
// drawn together, paler the less of their room they cover. step_svg.cpp.
std::string step_pair_svg(const StepPair& pair, Theme theme, const std::string& id);

}  // namespace stepladder
