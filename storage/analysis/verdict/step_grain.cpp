// Resolution of printed step times. A coarse one makes the median snap to a printed value, so that two runs seem to
// differ by a whole grain or by nothing, each with an interval of no width.
#include "storage/analysis/verdict/step_grain.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>

#include "storage/analysis/change_point.h"
#include "storage/analysis/means/student_t.h"
#include "storage/analysis/statistics.h"

namespace stepladder {
namespace {

constexpr std::size_t fewest_with_grain = 8;
constexpr std::size_t fewest_resolved = 8;
constexpr double ties = 3;               // steps of one value, on average, that show a grain
constexpr double coarse = 0.001;         // of a step
constexpr double in_blocks = 0.0005;     // a grain's share of a block's step
constexpr double most_of_a_step = 0.01;  // grain of a value whose digits show none
constexpr double least_share = 0.03;     // of the steps beyond an edge between two values
constexpr double rounding = 1e-7;        // relative error of arithmetic on printed values

// The place of the last digit that isn't zero, as far as zeros behind the first two digits, or a unit, may have been
// printed; 0 if there are more than six digits.
double decimal_grain(double value) {
  const double most = std::max(std::pow(10, std::floor(std::log10(value * (1 + rounding))) - 1), 1.0);
  for (double grain = most; grain > 1e-6 * value; grain /= 10) {
    const double count = value / grain;
    if (count > 0.5 && std::abs(count - std::round(count)) < rounding * count) return grain;
  }
  return 0;
}

// The grain of a single value: a time, or the inverse of a rate per second.
double grain_of_digits(double ms) {
  const double of_time = decimal_grain(ms);
  const double per_s = 1000 / ms;
  const double of_rate = decimal_grain(per_s) * ms / per_s;
  return std::max(of_time, of_rate);  // either may have been printed
}

// Distance between neighbouring values around the middle.
double distance(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(n / 4);
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(n - 1 - n / 4);
  std::vector<double> distinct{*first};
  for (auto at = first; at <= last; ++at)
    if (*at > distinct.back() * (1 + rounding)) distinct.push_back(*at);
  if (static_cast<double>(last - first + 1) < ties * static_cast<double>(distinct.size())) return 0;
  std::vector<double> gaps;
  for (std::size_t i = 1; i < distinct.size(); ++i) gaps.push_back(distinct[i] - distinct[i - 1]);
  if (!gaps.empty()) return median_of(std::move(gaps));
  // All values are equal: the grain follows from the next value above or below, if it is near, and from the digits.
  double nearest = grain_of_digits(distinct[0]);
  if (nearest == 0) nearest = most_of_a_step * distinct[0];
  const auto above = std::ranges::upper_bound(sorted, distinct[0] * (1 + rounding));
  const auto below = std::ranges::lower_bound(sorted, distinct[0] * (1 - rounding));
  if (above != sorted.end()) nearest = std::min(nearest, *above - distinct[0]);
  if (below != sorted.begin()) nearest = std::min(nearest, distinct[0] - *(below - 1));
  return nearest;
}

// The largest error, in grains, of a mean of rounded steps, by the shares of steps below the two edges of the middle
// value. Outliers aren't scatter, so an edge counts only if there are steps enough beyond it.
double bias_in_grains(const std::vector<double>& sorted, double grain) {
  const double middle = sorted[sorted.size() / 2];
  const auto share_below = [&](double edge) {
    return static_cast<double>(std::ranges::lower_bound(sorted, edge) - sorted.begin()) /
           static_cast<double>(sorted.size());
  };
  const double low = share_below(middle - grain / 2);
  const double high = share_below(middle + grain / 2);
  const auto counts = [](double share) { return share > least_share && share < 1 - least_share; };
  if (counts(low) && counts(high)) {
    const double sigma = 1 / (normal_quantile(high) - normal_quantile(low));
    return std::numbers::inv_pi * std::exp(-2 * std::numbers::pi * std::numbers::pi * sigma * sigma);
  }
  // With one edge in use, the true mean is near it, however narrow the scatter: that of the rounded steps isn't.
  if (counts(low)) return std::abs(low - 0.5);
  return counts(high) ? std::abs(high - 0.5) : 0.5;
}

}  // namespace

double last_digit_of(std::span<const double> figures) {
  constexpr int most_digits = 9;  // behind the point
  double grain = 1;
  for (int digits = 0; digits <= most_digits; ++digits, grain /= 10) {
    const auto has_no_more = [&](double figure) {
      const double count = figure / grain;
      return std::abs(count - std::round(count)) <= 1e-9 * std::max(std::abs(count), 1.0);
    };
    if (std::ranges::all_of(figures, has_no_more)) return grain;
  }
  return 0;
}

double rounding_error(double grain, double std) {
  if (!(grain > 0)) return 0;
  const double scatter = std / grain;
  return grain / 2 * std::exp(-2 * std::numbers::pi * std::numbers::pi * scatter * scatter);
}

StepGrain grain_of(std::span<const double> steps_ms, ReadFrom from) {
  StepGrain grain;
  if (steps_ms.size() < fewest_with_grain) return grain;
  std::vector<double> sorted(steps_ms.begin(), steps_ms.end());
  std::ranges::sort(sorted);
  grain.ms = distance(sorted);
  if (grain.ms <= 0) return grain;
  const double middle = sorted[sorted.size() / 2];
  grain.is_coarse = grain.ms > coarse * middle;
  if (from == ReadFrom::clock) {
    grain.bias = grain.ms / (middle * static_cast<double>(sorted.size()));
    return grain;
  }
  grain.bias = bias_in_grains(sorted, grain.ms) * grain.ms / middle;
  return grain;
}

std::vector<double> resolved_steps(std::span<const double> steps_ms, const StepGrain& grain) {
  std::vector<double> steps(steps_ms.begin(), steps_ms.end());
  if (!grain.is_coarse || steps.size() < 2 * fewest_resolved) return steps;
  std::vector<double> sorted = steps;
  const double middle = quantile(sorted, 0.5);
  const double limit = std::max(spike_limit(middle, quantile(sorted, 0.75)), middle + 3.5 * grain.ms);
  const auto wanted = static_cast<std::size_t>(std::ceil(grain.ms / (in_blocks * middle)));
  const std::size_t blocks = std::max(steps.size() / wanted, fewest_resolved);
  std::vector<double> means;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto first = steps.begin() + static_cast<std::ptrdiff_t>(i * steps.size() / blocks);
    const auto end = steps.begin() + static_cast<std::ptrdiff_t>((i + 1) * steps.size() / blocks);
    const auto kept = std::partition(first, end, [&](double value) { return value <= limit; });
    if (2 * (kept - first) >= end - first)
      means.push_back(std::accumulate(first, kept, 0.0) / static_cast<double>(kept - first));
  }
  return means.size() >= fewest_resolved ? means : std::vector<double>(steps_ms.begin(), steps_ms.end());
}

}  // namespace stepladder
