#include "app/curves/slow_steps.h"

#include <algorithm>
#include <cmath>

#include "storage/analysis/statistics.h"
#include "storage/contention.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

std::string reason_for(const Series& series, std::size_t i, std::span<const SystemMetrics> metrics,
                       std::span<const std::int64_t> saved) {
  const std::int64_t step = series.step[i];
  if (i == 0) return "first step: memory is allocated and kernels are chosen";
  if (!is_missing(series.val_loss[i])) return "validation ran here";
  if (!is_missing(series.val_loss[i - 1])) return "validation ran just before";
  if (std::ranges::find(saved, step) != saved.end() || std::ranges::find(saved, step - 1) != saved.end())
    return "a checkpoint was written here";
  for (const SystemMetrics& sample : metrics) {
    if (sample.step >= step - 1 && sample.step <= step && !sample.throttle_reason.empty())
      return "the device was throttled: " + sample.throttle_reason;
  }
  ContentionOfSteps contention(metrics);
  if (const Contention others = contention.during(series.at[i], series.dt_ms[i]); is_disturbed(others))
    return contention_text(others);
  if (i < 3) return "one of the first steps";
  double usual = 0;
  std::size_t looks = 0;
  double here = missing;
  for (const SystemMetrics& sample : metrics) {
    if (is_missing(sample.gpu_clock_mhz)) continue;
    usual += sample.gpu_clock_mhz;
    ++looks;
    if (sample.step >= step - 1 && sample.step <= step) here = sample.gpu_clock_mhz;
  }
  if (looks > 3 && !is_missing(here) && here < 0.9 * usual / static_cast<double>(looks))
    return "the GPU's clock was lower than usual";
  return "reason unknown";
}

}  // namespace

std::vector<SlowStep> slow_steps(const Series& series, std::span<const SystemMetrics> metrics,
                                 std::span<const std::int64_t> saved, std::size_t most) {
  std::vector<double> times;
  for (const double dt : series.dt_ms) {
    if (std::isfinite(dt) && dt > 0) times.push_back(dt);
  }
  if (times.size() < 8) return {};
  const double median = median_of(times);
  std::vector<std::size_t> slow;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (std::isfinite(series.dt_ms[i]) && series.dt_ms[i] > slow_factor * median) slow.push_back(i);
  }
  std::ranges::sort(slow, [&](std::size_t a, std::size_t b) { return series.dt_ms[a] > series.dt_ms[b]; });
  if (slow.size() > most) slow.resize(most);
  std::vector<SlowStep> found;
  for (const std::size_t i : slow) {
    found.push_back(
        {series.step[i], series.dt_ms[i],
         fmt::format("{:.1f} times the median; {}", series.dt_ms[i] / median, reason_for(series, i, metrics, saved))});
  }
  return found;
}

}  // namespace stepladder
