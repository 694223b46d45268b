// A run's quantity as a curve where not every step is in memory: an overview, and the points that stand for it. Pure.
#pragma once

#include <cstdint>

#include "app/curves/curves.h"
#include "app/curves/min_max_pyramid.h"
#include "storage/analysis/overview.h"

namespace stepladder {

// Never changes once it is made, so that threads share it.
struct OverviewCurve {
  Overview overview;
  std::int64_t first = 0;  // of a zoomed one: the steps that were asked for
  std::int64_t last = 0;
  Points points;         // lowest and highest of each bucket, in their order, against the step: no spike is left out
  MinMaxPyramid levels;  // of the points

  std::int64_t behind() const { return overview.exact() ? 0 : overview.values(); }  // values that the points stand for
};

OverviewCurve curve_of(Overview overview);

// At the same steps as the points: the mean of the bucket that each point is of.
Points means_of(const Overview& overview);

// Up to each bucket's first and last step: the sum of all values, each as often as the steps since the one before.
Points totals_of(const Overview& overview);

}  // namespace stepladder
