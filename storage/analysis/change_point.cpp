// Warm-up by MSER-5 on logarithms of batch medians, then spikes and their period. A cut has to pass several tests
// (slower by 1 % and by three scatters), since every excluded step changes the throughput that a run is judged by.
#include "storage/analysis/change_point.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "storage/analysis/statistics.h"

namespace stepladder {
namespace {

constexpr std::size_t batch_size = 5;
constexpr double least_log_step = 0.01;  // of the logarithm

bool usable(double dt_ms) {
  return dt_ms > 0 && std::isfinite(dt_ms);
}

double median_between(const std::vector<double>& values, std::size_t from, std::size_t to) {
  std::vector<double> part(values.begin() + static_cast<std::ptrdiff_t>(from),
                           values.begin() + static_cast<std::ptrdiff_t>(to));
  return quantile(part, 0.5);
}

std::vector<double> batch_medians(const std::vector<double>& logs, std::size_t from) {
  std::vector<double> medians;
  for (std::size_t i = from; i + batch_size <= logs.size(); i += batch_size)
    medians.push_back(median_between(logs, i, i + batch_size));
  return medians;
}

// The number of batches whose removal leaves the smallest standard error around a line; sums run from the end.
std::size_t best_cut(const std::vector<double>& batches) {
  const std::size_t n = batches.size();
  const double centre = batches[n / 2];  // keeps the sums small
  double count = 0, sx = 0, sxx = 0, sy = 0, sxy = 0, syy = 0;
  std::size_t best = 0;
  double least = INFINITY;
  for (std::size_t i = n; i-- > 0;) {
    const double x = static_cast<double>(n - i);
    const double y = batches[i] - centre;
    ++count;
    sx += x;
    sxx += x * x;
    sy += y;
    sxy += x * y;
    syy += y * y;
    if (i > n / 2 || count < 4) continue;
    const double vx = sxx - sx * sx / count;
    const double cov = sxy - sx * sy / count;
    const double left = std::max(syy - sy * sy / count - cov * cov / vx, 0.0);
    const double error = left / (count * count);
    if (error <= least) {
      least = error;
      best = i;
    }
  }
  return best;
}

// The step around `cut` at which two levels fit best. Single steps are clamped to the two levels, so that none decides
// alone.
std::size_t exact_cut(const std::vector<double>& logs, std::size_t from, std::size_t cut, double before, double after) {
  const std::size_t first = std::max(from, cut - std::min(cut, 2 * batch_size));
  const std::size_t last = std::min(logs.size(), cut + 2 * batch_size);
  double sum = 0;
  double best = INFINITY;
  std::size_t at = cut;
  for (std::size_t i = first; i <= last; ++i) {
    if (sum < best) {
      best = sum;
      at = i;
    }
    if (i == last) break;
    const double x = std::clamp(logs[i], std::min(before, after), std::max(before, after));
    sum += (x - before) * (x - before) - (x - after) * (x - after);
  }
  return at;
}

// Cuts once; 0 without a cut.
std::size_t slower_start(const std::vector<double>& logs, std::size_t from) {
  const std::vector<double> batches = batch_medians(logs, from);
  if (batches.size() < 8) return 0;
  const std::size_t cut = best_cut(batches);
  if (cut == 0) return 0;
  const double after = median_between(batches, cut, batches.size());
  std::vector<double> distances;
  for (std::size_t i = cut; i < batches.size(); ++i) distances.push_back(std::abs(batches[i] - after));
  const double scatter = 1.4826 * quantile(distances, 0.5);
  // Most of the steps that are cut, and all of them together, have to be slower.
  const double before = median_between(batches, 0, cut);
  if (before - after < std::max(least_log_step, 3 * scatter)) return 0;
  // The level right before the cut decides, not that of a first step that compiled.
  const double edge = median_between(batches, cut - std::min<std::size_t>(cut, 3), cut);
  return exact_cut(logs, from, from + cut * batch_size, edge, after);
}

// The number of single outliers in front, too few to move a batch's median.
std::size_t slow_steps_in_front(const std::vector<double>& logs) {
  if (logs.size() < 4 * batch_size) return 0;
  std::vector<double> sorted = logs;
  const double median = quantile(sorted, 0.5);
  const double limit = median + std::max(least_log_step, 6 * (quantile(sorted, 0.75) - median));
  std::size_t slow = 0;
  while (slow < batch_size && logs[slow] > limit) ++slow;
  return slow;
}

struct Period {
  std::size_t steps = 0;
  std::size_t hits = 0;
};

// The period that most of the spikes share: the commonest distance between neighbours, and the place within it.
Period period_of(const std::vector<std::int64_t>& steps, std::int64_t last_step) {
  if (steps.size() < 3) return {};
  std::map<std::int64_t, std::size_t> distances;
  for (std::size_t i = 1; i < steps.size(); ++i) ++distances[steps[i] - steps[i - 1]];
  const auto commonest =
      std::ranges::max_element(distances, [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t period = commonest->first;
  if (period < 2) return {};
  std::map<std::int64_t, std::size_t> places;
  for (const std::int64_t step : steps) ++places[step % period];
  const auto place = std::ranges::max_element(places, [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto expected = static_cast<std::size_t>((last_step - steps.front()) / period) + 1;
  const bool regular = place->second >= 3 && 5 * place->second >= 4 * expected && 2 * place->second >= steps.size();
  return regular ? Period{static_cast<std::size_t>(period), place->second} : Period{};
}

}  // namespace

std::size_t warmup_end(std::span<const double> dt_ms, std::size_t fixed_minimum) {
  fixed_minimum = std::min(fixed_minimum, dt_ms.size());
  std::vector<double> logs;
  std::vector<std::size_t> places;
  for (std::size_t i = fixed_minimum; i < dt_ms.size(); ++i) {
    if (!usable(dt_ms[i])) continue;
    logs.push_back(std::log(dt_ms[i]));
    places.push_back(i);
  }
  std::size_t cut = slower_start(logs, 0);
  if (cut == 0) cut = slow_steps_in_front(logs);
  return cut == 0 || cut >= places.size() ? fixed_minimum : places[cut];
}

double spike_limit(double median_ms, double p75_ms) {
  return std::max(median_ms + 6 * (p75_ms - median_ms), 1.05 * median_ms);
}

double pause_limit(double median_ms) {
  return std::max(20 * median_ms, 1000.0);
}

bool is_beside_evaluation(const Series& series, std::size_t place) {
  return !is_missing(series.val_loss[place]) || (place > 0 && !is_missing(series.val_loss[place - 1]));
}

Spikes find_spikes(const Series& series, std::size_t first_steady) {
  Spikes spikes;
  std::vector<double> steady;
  for (std::size_t i = first_steady; i < series.size(); ++i)
    if (usable(series.dt_ms[i])) steady.push_back(series.dt_ms[i]);
  if (steady.size() < 8) return spikes;
  const double median = quantile(steady, 0.5);
  const double limit = spike_limit(median, quantile(steady, 0.75));

  std::vector<std::int64_t> steps;
  for (std::size_t i = first_steady; i < series.size(); ++i) {
    if (!usable(series.dt_ms[i]) || series.dt_ms[i] <= limit) continue;
    spikes.at.push_back(i);
    steps.push_back(series.step[i]);
    if (series.dt_ms[i] > pause_limit(median)) ++spikes.pauses;
  }
  const Period period = period_of(steps, series.step.back());
  spikes.period = period.steps;
  spikes.regular = period.hits;
  if (period.steps > 0) {
    const auto evaluated =
        std::ranges::count_if(spikes.at, [&](std::size_t i) { return is_beside_evaluation(series, i); });
    spikes.validation = 2 * static_cast<std::size_t>(evaluated) > spikes.at.size();
  }
  return spikes;
}

}  // namespace stepladder
