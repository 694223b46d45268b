// A run's steps as curves: a quantity over an axis, differences between runs, means over repeats. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "storage/analysis/overview.h"
#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

std::string_view title_of(Quantity quantity);  // "Validation loss"; of a metric its name
std::string_view unit_of(Quantity quantity);   // "ms"; empty for losses, which are nats per token everywhere

// The x axis. `time` is the time of the steps alone, without pauses, validation and compiling
// (storage/analysis/training_progress.h); `wall` includes them and counts from the end of the first step.
enum class Axis { step, tokens, time, wall, flops, loss, lr, grad_norm };
inline constexpr auto all_axes = enumerators<Axis>();
std::string_view title_of(Axis axis);  // "tokens", "training time, s"
bool is_metric(Axis axis);             // a run's points aren't ordered along it

struct Points {
  std::vector<double> x;  // ascending
  std::vector<double> y;
  bool is_path = true;  // neighbours are consecutive steps; false if x is a metric, where a line would have no meaning
  bool empty() const { return x.empty(); }
};

// A mean with the lowest and highest value at every x: of several runs (mean_of), or of the buckets of a long run
// (means_of).
struct MeanCurve {
  Points mean;
  std::vector<double> low;
  std::vector<double> high;
  std::vector<int> runs;  // that have a finite value at each x; empty for the buckets of one run
};

// The place of each step along the axis; missing where it is unknown.
std::vector<double> axis_values(const Run& run, const Series& series, Axis axis);

// Skips steps whose y is missing or whose x is unknown. FLOPs are Run::model_flops_per_token x tokens.
Points points_of(const Run& run, const Series& series, Quantity quantity, Axis axis);

// The places of a long run's steps along an axis that isn't a metric: x is the step, y the place; both ascend. Takes
// time from `total_ms`, the milliseconds up to and including a step, and the other axes from an excerpt of the run's
// steps.
Points places_of(const Run& run, const Series& excerpt, const Points& total_ms, Axis axis);

// The same for a run whose steps are all in memory.
Points places_of(const Run& run, const Series& steps, Axis axis);

// The points of `by_step` at these places, interpolated linearly; drops those beyond the ends.
Points placed(const Points& by_step, const Points& places);
MeanCurve placed(const MeanCurve& by_step, const Points& places);

// The step at a place; beyond the ends the first and the last.
double step_at(const Points& places, double place);

// y of `run` minus y of `base` (or divided by it) where both are known; interpolates between base's points.
Points difference(const Points& run, const Points& base);
Points ratio(const Points& run, const Points& base);

// The mean of several runs at every x that any of them has, interpolated between a run's neighbouring points. A run
// that has ended, hasn't begun or is NaN or infinite there doesn't count; where none is finite the mean is NaN. Where
// the runs' x differ much, as over time, as many x are kept as the longest run has.
MeanCurve mean_of(std::span<const Points> runs);

struct RangeStatistics {
  std::size_t count = 0;  // finite values
  double mean = missing;
  double low = missing;
  double high = missing;
  double last = missing;  // NaN or infinite if the last value is
};
RangeStatistics statistics_between(const Points& points, double x_low, double x_high);

// The nearest point's y; missing beyond the ends.
double value_at(const Points& points, double x);

}  // namespace stepladder
