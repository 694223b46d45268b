// Student's, Welch's and z tests on figures of small samples, and the sample sizes that they need (by doubling, then
// bisection). Equal values have no spread, so the t and Welch tests are `missing` for them rather than certain.
#include "storage/analysis/means/mean_test.h"

#include <algorithm>
#include <cmath>

#include "storage/analysis/means/student_t.h"

namespace stepladder {
namespace {

constexpr std::int64_t most_needed = 1'000'000;

// The variance of a mean, and the degrees of freedom that it was estimated with.
struct ErrorOfMean {
  double variance;
  double freedom;
};

ErrorOfMean error_of(const SampleFigures& sample, double scale) {
  const auto n = static_cast<double>(sample.n);
  const double std = sample.std * scale;
  return {std * std / n, n - 1};
}

// Welch's approximate degrees of freedom of a difference.
double welch_freedom(const ErrorOfMean& a, const ErrorOfMean& b) {
  const double sum = a.variance + b.variance;
  return sum * sum / (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
}

// The smallest n in [first, most_needed] with enough(n), which stays true from there on; 0 if there is none.
template <typename Enough>
std::int64_t smallest(std::int64_t first, Enough enough) {
  std::int64_t high = first;
  while (high <= most_needed && !enough(high)) high *= 2;
  if (high > most_needed) return 0;
  std::int64_t low = high / 2;  // not enough, or below `first`
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (middle >= first && enough(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

SampleFigures figures_of(std::span<const double> values) {
  SampleFigures figures{.n = values.size()};
  if (values.empty()) return figures;
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  figures.mean = sum / n;
  if (!std::isfinite(figures.mean)) return figures;
  double squares = 0;
  for (const double value : values) squares += (value - figures.mean) * (value - figures.mean);
  if (values.size() > 1) figures.std = std::sqrt(squares / (n - 1));
  figures.median = median_of({values.begin(), values.end()});
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  figures.low = *low;
  figures.high = *high;
  // Equal values have no spread, although their mean is rounded.
  if (figures.low == figures.high && values.size() > 1) figures.std = 0;
  return figures;
}

Interval mean_interval(const SampleFigures& sample, double error) {
  if (is_missing(sample.std)) return {};
  const ErrorOfMean of_mean = error_of(sample, 1);
  const double half = student_t_quantile(1 - error / 2, of_mean.freedom) * std::sqrt(of_mean.variance);
  return {sample.mean - half, sample.mean + half};
}

double p_below_t(const SampleFigures& sample, double target) {
  if (is_missing(sample.std) || !(sample.std > 0)) return missing;
  const ErrorOfMean error = error_of(sample, 1);
  return student_t_cdf((sample.mean - target) / std::sqrt(error.variance), error.freedom);
}

double p_below_z(const SampleFigures& sample, double target, double sigma) {
  if (sample.n == 0 || !std::isfinite(sample.mean)) return missing;
  return normal_cdf((sample.mean - target) * std::sqrt(static_cast<double>(sample.n)) / sigma);
}

double p_below_welch(const SampleFigures& sample, const SampleFigures& baseline, double margin) {
  if (is_missing(sample.std) || is_missing(baseline.std)) return missing;
  const ErrorOfMean ours = error_of(sample, 1);
  const ErrorOfMean theirs = error_of(baseline, 1);
  const double variance = ours.variance + theirs.variance;
  if (!(variance > 0)) return missing;
  return student_t_cdf((sample.mean - (baseline.mean - margin)) / std::sqrt(variance), welch_freedom(ours, theirs));
}

Interval mean_ratio_interval(const SampleFigures& baseline, const SampleFigures& sample, double error) {
  if (is_missing(sample.std) || is_missing(baseline.std) || !(sample.mean > 0) || !(baseline.mean > 0)) return {};
  const ErrorOfMean ours = error_of(sample, 1 / sample.mean);
  const ErrorOfMean theirs = error_of(baseline, 1 / baseline.mean);
  const double variance = ours.variance + theirs.variance;
  if (!(variance > 0)) return {};
  const double half = student_t_quantile(1 - error / 2, welch_freedom(ours, theirs)) * std::sqrt(variance);
  const double ratio = baseline.mean / sample.mean;
  return {ratio * std::exp(-half), ratio * std::exp(half)};
}

std::int64_t needed_for_t(double effect, double alpha, double power) {
  if (!(effect > 0) || !std::isfinite(effect)) return 0;
  return smallest(2, [&](std::int64_t n) {
    const auto freedom = static_cast<double>(n - 1);
    const double noncentrality = effect * std::sqrt(static_cast<double>(n));
    return noncentral_t_above(student_t_quantile(1 - alpha, freedom), freedom, noncentrality) >= power;
  });
}

std::int64_t needed_for_z(double effect, double alpha, double power) {
  if (!(effect > 0) || !std::isfinite(effect)) return 0;
  const double z = (normal_quantile(1 - alpha) + normal_quantile(power)) / effect;
  const double n = std::max(1.0, std::ceil(z * z));
  return n > most_needed ? 0 : static_cast<std::int64_t>(n);
}

std::int64_t needed_for_welch(double difference, double std, double baseline_std, double alpha, double power) {
  const double squares = std * std + baseline_std * baseline_std;
  if (!(difference > 0) || !(squares > 0) || !std::isfinite(difference)) return 0;
  return smallest(2, [&](std::int64_t n) {
    const auto size = static_cast<double>(n);
    const double freedom = welch_freedom({std * std / size, size - 1}, {baseline_std * baseline_std / size, size - 1});
    const double noncentrality = difference / std::sqrt(squares / size);
    return noncentral_t_above(student_t_quantile(1 - alpha, freedom), freedom, noncentrality) >= power;
  });
}

}  // namespace stepladder
