// The figures of a metric's values that lists and comparisons show.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// `missing`: there is no such value. `first` and `last` are as logged, so they may be NaN; the other figures skip
// values that aren't finite.
struct MetricFigures {
  std::int64_t count = 0;  // of all values
  std::int64_t not_finite = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double first = missing;
  double last = missing;
  double lowest = missing;
  double highest = missing;
  double mean = missing;
  double median = missing;
};

// A metric of a run against the baseline's: of the last values, and of the best ones if it is known which are better.
struct MetricDelta {
  double last = missing;  // the run's less the baseline's
  double last_factor = missing;
  double best = missing;
  double best_factor = missing;
};
MetricDelta metric_delta(const MetricFigures& base, const MetricFigures& run, Direction direction);

// The lowest or highest value; `missing` if it isn't known which is better.
double best_value(const MetricFigures& figures, Direction direction);

// Value by value, in bounded memory: the median of more than 2,000,000 values is that of every k-th.
class MetricFiguresBuilder {
 public:
  void add(std::int64_t step, double value);  // steps ascend
  MetricFigures finish();

 private:
  MetricFigures figures_;
  double sum_ = 0;
  std::vector<double> sample_;
  std::int64_t stride_ = 1;  // of the finite values in `sample_`
};

}  // namespace stepladder
