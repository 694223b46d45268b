// Block bootstrap of medians, widened for short and correlated series (statistics.h gives the reasons and papers). The
// random numbers are seeded and our own, so the same steps give the same interval on every machine; the tests compare
// intervals with simulated truth.
#include "storage/analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "storage/analysis/means/student_t.h"

namespace stepladder {
namespace {

constexpr std::size_t fewest_steps = 8;
constexpr std::size_t fewest_blocks = 5;
constexpr std::size_t most_steps = 8192;
constexpr std::size_t most_draws = 2'000'000;  // of single steps

// Gives the same numbers on every platform, unlike the standard library's distributions (Vigna's SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((next() >> 32) * n >> 32); }

 private:
  std::uint64_t state_;
};

// Means over k of (x_t - mean) (x_t+k - mean), for lags 0..most.
std::vector<double> autocovariances(std::span<const double> x, std::size_t most) {
  const auto n = static_cast<double>(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  std::vector<double> result(most + 1);
  for (std::size_t lag = 0; lag <= most; ++lag) {
    double sum = 0;
    for (std::size_t i = lag; i < x.size(); ++i) sum += (x[i] - mean) * (x[i - lag] - mean);
    result[lag] = sum / n;
  }
  return result;
}

// The lag after which correlations are noise: the first m with `in_a_row` insignificant ones behind it.
std::size_t last_significant_lag(const std::vector<double>& covariance, std::size_t n, std::size_t in_a_row) {
  const auto size = static_cast<double>(n);
  const double limit = 2 * std::sqrt(std::log10(size) / size) * covariance[0];
  std::size_t quiet = 0;
  std::size_t last = 0;
  for (std::size_t lag = 1; lag < covariance.size(); ++lag) {
    if (std::abs(covariance[lag]) > limit) {
      last = lag;
      quiet = 0;
    } else if (++quiet == in_a_row) {
      return lag - in_a_row;
    }
  }
  return last;
}

// Logarithms of step times as a trend and residuals, ready to be resampled in blocks.
struct Residuals {
  std::vector<double> values;  // without the trend; median near 0
  double slope = 0;            // per step
  double middle = 0;           // median of the logarithms
  double spread = 0;           // robust standard deviation: 1.4826 x median absolute deviation
};

Residuals residuals_of(std::span<const double> steps) {
  Residuals residuals{.values = std::vector<double>(steps.size()), .slope = log_trend(steps)};
  std::transform(steps.begin(), steps.end(), residuals.values.begin(), [](double value) { return std::log(value); });
  residuals.middle = median_of(residuals.values);
  const double centre = 0.5 * static_cast<double>(steps.size() - 1);
  for (std::size_t i = 0; i < steps.size(); ++i)
    residuals.values[i] -= residuals.middle + residuals.slope * (static_cast<double>(i) - centre);
  std::vector<double> distances(steps.size());
  std::transform(residuals.values.begin(), residuals.values.end(), distances.begin(),
                 [](double x) { return std::abs(x); });
  residuals.spread = 1.4826 * quantile(distances, 0.5);
  return residuals;
}

// Correlation of neighbouring steps, without pairs that have an outlier, corrected for the bias of a fitted mean and
// slope: raw = rho - (2 + 4 rho) / n on average (Kendall 1954; Orcutt & Winokur 1969). Few steps can't show that their
// noise is slower than they are many.
double neighbour_correlation(const Residuals& residuals) {
  const std::vector<double>& x = residuals.values;
  const double far = 3.5 * residuals.spread;
  double products = 0;
  double squares = 0;
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (std::abs(x[i]) > far || std::abs(x[i - 1]) > far) continue;
    products += x[i] * x[i - 1];
    squares += 0.5 * (x[i] * x[i] + x[i - 1] * x[i - 1]);
  }
  if (squares <= 0) return 0;
  const double raw = products / squares;
  const auto n = static_cast<double>(x.size());
  return std::clamp((raw + 2 / n) / (1 - 4 / n), 0.0, std::clamp(1 - 10 / n, 0.97, 0.995));
}

// The factor by which blocks of this length understate the error of a median, since they miss correlations across their
// ends; for Gaussian noise with this correlation of neighbours (first order). A median depends on the side of it that
// each step is on, and sides correlate by (2 / pi) asin(rho^k) at lag k.
double missed_by_blocks(double rho, std::size_t block) {
  double whole = 1;
  double seen = 1;
  double power = rho;
  for (std::size_t lag = 1; power > 1e-4; ++lag, power *= rho) {
    const double correlation = 2 * std::numbers::inv_pi * std::asin(power);
    whole += 2 * correlation;
    if (lag < block) seen += 2 * correlation * (1 - static_cast<double>(lag) / static_cast<double>(block));
  }
  return std::sqrt(whole / seen);
}

// The factor by which a fitted mean and slope make the residuals too small, since they absorb part of slow noise; for
// noise with this correlation of neighbours (first order). From E[squares left] = sigma^2 (n - trace(H R)), H the
// projection on mean and slope, R the correlations.
double taken_by_trend(double rho, std::size_t n) {
  const auto size = static_cast<double>(n);
  const double centre = 0.5 * (size - 1);
  const double squares = size * (size * size - 1) / 12;  // of x = i - centre
  double by_mean = size;
  double by_slope = squares;
  double power = rho;
  for (std::size_t lag = 1; lag < n && power > 1e-4; ++lag, power *= rho) {
    const auto k = static_cast<double>(lag);
    const double pairs = size - k;
    // Sum of x_i x_i+k, from those of i and i^2.
    const double first = pairs * (pairs - 1) / 2;
    const double second = (pairs - 1) * pairs * (2 * pairs - 1) / 6;
    const double products = second + first * (k - 2 * centre) + pairs * centre * (centre - k);
    by_mean += 2 * power * pairs;
    by_slope += 2 * power * products;
  }
  return 1 / std::sqrt(1 - (by_mean / size + by_slope / squares) / size);
}

// Degrees of freedom of a variance estimated from noise with this correlation of neighbours (Bayley & Hammersley 1946,
// "The 'effective' number of independent observations in an autocorrelated time series").
double freedom_of(double rho, std::size_t n) {
  return static_cast<double>(n) * (1 - rho * rho) / (1 + rho * rho);
}

// Keeps every k-th step if there are too many to draw repeatedly.
void thin(std::vector<double>& steps) {
  const std::size_t stride = (steps.size() + most_steps - 1) / most_steps;
  if (stride < 2) return;
  std::size_t kept = 0;
  for (std::size_t i = stride / 2; i < steps.size(); i += stride) steps[kept++] = steps[i];
  steps.resize(kept);
}

// The median of trend + residuals drawn again, by counting in narrow bins around the middle instead of sorting.
class ResampledMedian {
 public:
  explicit ResampledMedian(const Residuals& residuals) : residuals_(residuals) {
    const auto n = static_cast<double>(residuals.values.size());
    bins_ = std::clamp(std::ceil(16 * std::sqrt(n)), 128.0, 4096.0);
    counts_.resize(static_cast<std::size_t>(bins_) + 2);
    const double reach = 4 * residuals.spread + 0.6 * std::abs(residuals.slope) * n;
    lowest_ = -reach;
    width_ = 2 * reach / bins_;
  }

  // Relative to the measured median.
  template <class BlockStart>
  double draw(std::size_t block, BlockStart&& block_start) {
    std::ranges::fill(counts_, 0U);
    const std::size_t n = residuals_.values.size();
    const double per_width = 1 / width_;
    double trend = -0.5 * static_cast<double>(n - 1) * residuals_.slope - lowest_;
    for (std::size_t drawn = 0; drawn < n;) {
      std::size_t at = block_start();
      for (std::size_t i = 0; i < block && drawn < n; ++i, ++drawn) {
        const double place = (residuals_.values[at] + trend) * per_width + 1;
        ++counts_[static_cast<std::size_t>(std::clamp(place, 0.0, bins_ + 1))];
        trend += residuals_.slope;
        if (++at == n) at = 0;
      }
    }
    const double half = 0.5 * static_cast<double>(n);
    double passed = 0;
    std::size_t bin = 0;
    while (passed + counts_[bin] < half) passed += counts_[bin++];
    return lowest_ + width_ * (static_cast<double>(bin) - 1 + (half - passed) / counts_[bin]);
  }

 private:
  const Residuals& residuals_;
  std::vector<std::uint32_t> counts_;
  double bins_ = 0;
  double lowest_ = 0;
  double width_ = 0;
};

// Kiefer & Vogelsang (2005), table 1: the 97.5 % point of the Bartlett kernel with bandwidth b x n.
double fixed_b_critical(double b) {
  return 1.9600 + 2.9694 * b + 0.4160 * b * b - 0.5324 * b * b * b;
}

Interval stretched(double centre, std::vector<double>& log_deviations, double resolution) {
  return {centre * std::exp(quantile(log_deviations, 0.025) - resolution),
          centre * std::exp(quantile(log_deviations, 0.975) + resolution)};
}

}  // namespace

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return missing;
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double fraction = place - static_cast<double>(below);
  const auto lower = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), lower, values.end());
  if (fraction == 0) return *lower;
  const double upper = *std::min_element(lower + 1, values.end());
  return *lower + (upper - *lower) * fraction;
}

double median_of(std::vector<double> values) {
  return quantile(values, 0.5);
}

double block_length(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 4) return 1;
  const auto size = static_cast<double>(n);
  const auto in_a_row = static_cast<std::size_t>(std::max(5.0, std::ceil(std::sqrt(std::log10(size)))));
  const std::size_t most = std::min(n - 1, static_cast<std::size_t>(std::ceil(std::sqrt(size))) + in_a_row);
  const std::vector<double> covariance = autocovariances(values, most);
  if (covariance[0] <= 0) return 1;
  const std::size_t significant = last_significant_lag(covariance, n, in_a_row);
  const std::size_t bandwidth = std::min(2 * std::max<std::size_t>(significant, 1), most);

  double variance = covariance[0];  // of the mean, times n
  double slope = 0;
  for (std::size_t lag = 1; lag <= bandwidth; ++lag) {
    const double place = static_cast<double>(lag) / static_cast<double>(bandwidth);
    const double weight = place <= 0.5 ? 1 : 2 * (1 - place);  // the flat-top kernel
    variance += 2 * weight * covariance[lag];
    slope += 2 * weight * static_cast<double>(lag) * covariance[lag];
  }
  const double d = 4.0 / 3.0 * variance * variance;
  if (d <= 0) return 1;
  const double length = std::cbrt(2 * slope * slope / d * size);
  const double longest = std::ceil(std::min(3 * std::sqrt(size), size / 3));
  return std::clamp(length, 1.0, longest);
}

double log_trend(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 3) return 0;
  std::vector<double> logs(n);
  std::transform(values.begin(), values.end(), logs.begin(), [](double value) { return std::log(value); });
  const double middle = median_of(logs);
  std::vector<double> distances(n);
  std::transform(logs.begin(), logs.end(), distances.begin(), [&](double x) { return std::abs(x - middle); });
  const double reach = 3 * 1.4826 * quantile(distances, 0.5);
  const double centre = 0.5 * static_cast<double>(n - 1);
  double above = 0;
  double below = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i) - centre;
    above += x * std::clamp(logs[i] - middle, -reach, reach);
    below += x * x;
  }
  return above / below;
}

MedianSample sample_median(std::span<const double> values, std::uint64_t seed) {
  std::vector<double> steps;
  steps.reserve(values.size());
  for (const double value : values)
    if (value > 0 && std::isfinite(value)) steps.push_back(value);
  MedianSample sample{.median = median_of(steps), .steps = steps.size()};
  if (steps.size() < fewest_steps) return sample;
  thin(steps);
  const std::size_t n = steps.size();
  const auto resamples = static_cast<int>(std::clamp<std::size_t>(most_draws / n, 250, 1000));

  const Residuals residuals = residuals_of(steps);
  sample.trend = residuals.slope * static_cast<double>(n - 1);
  sample.log_deviations.assign(static_cast<std::size_t>(resamples), 0.0);
  sample.log_error = 0;
  sample.block = 1;
  if (residuals.spread <= 0) return sample;  // more than half of the steps took exactly the same time

  std::vector<double> side(n);
  std::transform(residuals.values.begin(), residuals.values.end(), side.begin(),
                 [](double x) { return x > 0 ? 1.0 : -1.0; });
  sample.block = std::clamp(std::ceil(block_length(side)), 1.0, static_cast<double>(n / fewest_blocks));
  const auto block = static_cast<std::size_t>(sample.block);
  const double rho = neighbour_correlation(residuals);
  const double few = std::max(fixed_b_critical(sample.block / static_cast<double>(n)), t_critical(freedom_of(rho, n)));
  const double widened = few / fixed_b_critical(0) * missed_by_blocks(rho, block) * taken_by_trend(rho, n);
  ResampledMedian median(residuals);
  Random random(seed);
  double sum = 0;
  for (double& deviation : sample.log_deviations)
    sum += deviation = median.draw(block, [&] { return random.below(n); });
  const double mean = sum / resamples;
  double squares = 0;
  for (double& deviation : sample.log_deviations) {
    deviation = widened * (deviation - mean);
    squares += deviation * deviation;
  }
  sample.log_error = std::sqrt(squares / resamples);
  return sample;
}

MedianSample sample_steps(std::span<const double> steps_ms, ReadFrom from, std::uint64_t seed) {
  std::vector<double> steps;
  for (const double value : steps_ms)
    if (value > 0 && std::isfinite(value)) steps.push_back(value);
  const StepGrain grain = grain_of(steps, from);
  const std::vector<double> resolved = resolved_steps(steps, grain);
  MedianSample sample = sample_median(resolved, seed);
  sample.steps = steps.size();
  if (grain.ms <= 0 || is_missing(sample.median)) return sample;
  // The median of values on a grid is one of these, or halfway between two.
  const double per_value = static_cast<double>(resolved.size()) / static_cast<double>(steps.size());
  sample.resolution = grain.bias + grain.ms * per_value / (2 * sample.median);
  return sample;
}

Interval median_interval(const MedianSample& sample) {
  if (!sample.known()) return {};
  std::vector<double> deviations = sample.log_deviations;
  return stretched(sample.median, deviations, sample.resolution);
}

Interval ratio_interval(double ratio, const MedianSample& numerator, const MedianSample& denominator) {
  if (is_missing(ratio) || !numerator.known() || !denominator.known()) return {};
  // Resamples of the two are independent, so any pairing of them is a resample of the ratio.
  const std::size_t n = std::min(numerator.log_deviations.size(), denominator.log_deviations.size());
  std::vector<double> deviations(n);
  for (std::size_t i = 0; i < n; ++i) deviations[i] = numerator.log_deviations[i] - denominator.log_deviations[i];
  return stretched(ratio, deviations, numerator.resolution + denominator.resolution);
}

double t_critical(double degrees_of_freedom) {
  return student_t_quantile(0.975, std::max(degrees_of_freedom, 1.0));
}

}  // namespace stepladder
