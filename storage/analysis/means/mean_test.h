// Tests and intervals of the means of a few independent values, such as the final losses of repeated runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/analysis/statistics.h"
#include "storage/records.h"

namespace stepladder {

struct SampleFigures {
  std::size_t n = 0;
  double mean = missing;
  double std = missing;  // divides by n - 1; missing for fewer than 2 values
  double median = missing;
  double low = missing;
  double high = missing;
};

// A value that isn't finite makes the mean NaN; it is never skipped.
SampleFigures figures_of(std::span<const double> values);

// Interval of the mean that misses it with probability `error`, by Student's t.
Interval mean_interval(const SampleFigures& sample, double error = 0.05);

// The probability of a mean at least this far below `target` if the true mean is the target. Missing for fewer than 2
// values and for equal ones, which have no spread.
double p_below_t(const SampleFigures& sample, double target);
// The same if each value's standard deviation is known; from 1 value on.
double p_below_z(const SampleFigures& sample, double target, double sigma);
// The probability of a mean at least this far below baseline - margin if the true means differ by the margin alone
// (Welch 1947, "The generalization of Student's problem when several different population variances are involved").
double p_below_welch(const SampleFigures& sample, const SampleFigures& baseline, double margin);

// Interval of baseline's mean / sample's mean, for positive values, that misses it with probability `error`: Welch's
// for the difference of the means' logarithms, whose errors follow from the delta method.
Interval mean_ratio_interval(const SampleFigures& baseline, const SampleFigures& sample, double error = 0.05);

// The fewest values with which a test at level alpha finds a difference of `effect` standard deviations with this
// probability. 0 if there is no effect or it takes more than a million.
std::int64_t needed_for_t(double effect, double alpha, double power);
std::int64_t needed_for_z(double effect, double alpha, double power);
// The same for each of two pools of equal size; `effect` is in standard deviations of a pool, which may differ.
std::int64_t needed_for_welch(double difference, double std, double baseline_std, double alpha, double power);

}  // namespace stepladder
