// Intervals of medians of step times and of their ratios, for series whose neighbouring steps are correlated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/analysis/verdict/step_grain.h"
#include "storage/records.h"

namespace stepladder {

struct Interval {
  double low = missing;
  double high = missing;
  bool known() const { return !is_missing(low) && !is_missing(high); }
};

// Length of the blocks that a circular bootstrap of the mean of `values` should draw, at least 1: the automatic
// selection of Politis & White (2004), "Automatic block-length selection for the dependent bootstrap", with the
// correction of Patton, Politis & White (2009).
double block_length(std::span<const double> values);

// Slope per step of the logarithm, by least squares after values far from the median were pulled in. 0 for fewer
// than 3.
double log_trend(std::span<const double> values);

// The median of a run's steady step times, and its variation when blocks of steps are resampled.
struct MedianSample {
  double median = missing;
  std::size_t steps = 0;
  double block = missing;              // steps per block
  double trend = 0;                    // drift: the logarithm's change from the first steady step to the last
  std::vector<double> log_deviations;  // log(resampled median / median), widened for the few blocks (see below)
  double log_error = missing;          // their standard deviation
  double resolution = 0;               // how far rounding may have moved the median, as a logarithm (step_grain.h)

  bool known() const { return !log_deviations.empty(); }
};

// A circular block bootstrap (Politis & Romano 1992) of the median around the values' own trend: a drift is reported
// separately and doesn't widen the interval. The block length is the one for the series of sides (above or below the
// median), since the sides decide a median. With a few hundred steps, plain block bootstraps give intervals that are
// too narrow, so the deviations are widened for three reasons:
// 1. The error is estimated from little data: by c / 1.96, where c is the larger of the 97.5 % point for few blocks
//    (Kiefer & Vogelsang 2005, "A new asymptotic theory for heteroskedasticity-autocorrelation robust tests", table 1,
//    at block / steps) and Student's t at the degrees of freedom of noise with this correlation between neighbours
//    (Bayley & Hammersley 1946).
// 2. Blocks of this length miss a part of that correlation.
// 3. The fitted trend removed a part of the slow noise.
// tests/storage/analysis/statistics_test.cpp checks the intervals on simulated runs whose true medians are known.
//
// Deterministic; takes about ten milliseconds at most. Ignores values that aren't positive and finite; with fewer than
// 8 others, the result is unknown. Beyond 8,192 steps it uses every k-th, which can only widen the interval.
MedianSample sample_median(std::span<const double> values, std::uint64_t seed = 1);

// The same of step times that may have been rounded: of blocks of steps where the grain is coarse.
MedianSample sample_steps(std::span<const double> steps_ms, ReadFrom from, std::uint64_t seed = 1);

// 95 % interval of the median itself. Rounding moves either end further, by `resolution`.
Interval median_interval(const MedianSample& sample);

// 95 % interval of a ratio of two independent medians whose value is `ratio`.
Interval ratio_interval(double ratio, const MedianSample& numerator, const MedianSample& denominator);

// The point that Student's t with this many degrees of freedom exceeds in 2.5 % of cases.
double t_critical(double degrees_of_freedom);

// The q-quantile (0..1), linear between order statistics as numpy's default; missing for no values. Reorders its
// argument.
double quantile(std::vector<double>& values, double q);
double median_of(std::vector<double> values);

}  // namespace stepladder
