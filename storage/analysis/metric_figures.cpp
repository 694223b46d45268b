#include "storage/analysis/metric_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/statistics.h"

namespace stepladder {
namespace {

constexpr std::size_t most_in_sample = 2'000'000;

}  // namespace

double best_value(const MetricFigures& figures, Direction direction) {
  return direction == Direction::lower ? figures.lowest : direction == Direction::higher ? figures.highest : missing;
}

MetricDelta metric_delta(const MetricFigures& base, const MetricFigures& run, Direction direction) {
  const double best_of_base = best_value(base, direction), best = best_value(run, direction);
  return {.last = delta_from(base.last, run.last),
          .last_factor = factor_from(base.last, run.last),
          .best = delta_from(best_of_base, best),
          .best_factor = factor_from(best_of_base, best)};
}

void MetricFiguresBuilder::add(std::int64_t step, double value) {
  if (figures_.count++ == 0) {
    figures_.first_step = step;
    figures_.first = value;
  }
  figures_.last_step = step;
  figures_.last = value;
  if (!std::isfinite(value)) {
    ++figures_.not_finite;
    return;
  }
  const std::int64_t place = figures_.count - figures_.not_finite - 1;
  if (place == 0) figures_.lowest = figures_.highest = value;
  figures_.lowest = std::min(figures_.lowest, value);
  figures_.highest = std::max(figures_.highest, value);
  sum_ += value;
  if (place % stride_ != 0) return;
  if (sample_.size() == most_in_sample) {
    for (std::size_t i = 0; i < sample_.size() / 2; ++i) sample_[i] = sample_[2 * i];
    sample_.resize(sample_.size() / 2);
    stride_ *= 2;
  }
  sample_.push_back(value);
}

MetricFigures MetricFiguresBuilder::finish() {
  const std::int64_t finite = figures_.count - figures_.not_finite;
  if (finite > 0) figures_.mean = sum_ / static_cast<double>(finite);
  figures_.median = median_of(std::move(sample_));
  return figures_;
}

}  // namespace stepladder
