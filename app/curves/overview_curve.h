// A run's quantity as a curve if not every step is in memory: an overview, and the points or means that represent it.
// Pure.
#pragma once

#include <cstdint>

#include "app/curves/curves.h"
#include "app/curves/min_max_pyramid.h"
#include "storage/analysis/overview.h"

namespace stepladder {

// Never changes once it is made, so that threads share it.
struct OverviewCurve {
  Overview overview;
  std::int64_t first = 0;  // of a zoomed one: the steps asked for
  std::int64_t last = 0;
  Points points;         // lowest and highest of each bucket, in their order, over the step: keeps every spike
  MinMaxPyramid levels;  // of the points
  MeanCurve means;       // what is drawn instead of the points, which would be a saw-tooth; empty if exact

  std::int64_t not_finite = 0;  // of the values
  std::int64_t values = 0;

  std::int64_t behind() const { return overview.exact() ? 0 : values; }  // values that the points represent
};

OverviewCurve curve_of(Overview overview);

// The mean, lowest and highest value of each bucket at its first step, and of the last bucket at its last step too.
MeanCurve means_of(const Overview& overview);

// The sum of all values up to each bucket's first and last step, each value weighted by the steps since the previous
// one.
Points totals_of(const Overview& overview);

}  // namespace stepladder
