#include "storage/analysis/target_search.h"

#include <algorithm>
#include <utility>

#include "storage/analysis/statistics.h"

namespace stepladder {

double TargetSearch::loss_at(const Series& steps, std::size_t i) {
  constexpr std::size_t window = 5;
  if (reached_.by_validation) return steps.val_loss[i];
  if (is_missing(steps.loss[i])) return missing;
  last_.push_back(steps.loss[i]);
  if (last_.size() > window) last_.erase(last_.begin());
  std::vector<double> sorted = last_;
  return last_.size() == window ? quantile(sorted, 0.5) : missing;
}

void TargetSearch::add(const Series& steps) {
  for (std::size_t i = 0; i < steps.size() && !found(); ++i) {
    milliseconds_ = is_missing(milliseconds_) || !(steps.dt_ms[i] > 0) ? missing : milliseconds_ + steps.dt_ms[i];
    const std::int64_t of_step = steps.tokens[i] > 0 ? steps.tokens[i] : tokens_per_step_;
    tokens_ = is_missing(tokens_) || of_step <= 0 ? missing : tokens_ + static_cast<double>(of_step);
    const double loss = loss_at(steps, i);
    if (is_missing(loss) || !(loss <= target_loss_)) continue;
    reached_.step = steps.step[i];
    reached_.seconds = is_missing(milliseconds_) ? missing : milliseconds_ / 1000;
    reached_.tokens = tokens_;
  }
}

TargetReached reach(const Series& series, std::int64_t tokens_per_step, double target_loss) {
  const bool validated =
      std::any_of(series.val_loss.begin(), series.val_loss.end(), [](double loss) { return !is_missing(loss); });
  TargetSearch search(tokens_per_step, target_loss, validated);
  search.add(series);
  return search.reached();
}

TargetOfRuns target_of(std::span<const TargetReached> runs) {
  TargetOfRuns all{.runs = static_cast<int>(runs.size())};
  std::vector<double> steps;
  std::vector<double> seconds;
  std::vector<double> tokens;
  for (const TargetReached& run : runs) {
    all.by_validation += run.by_validation ? 1 : 0;
    if (run.step == 0) continue;
    ++all.reached;
    steps.push_back(static_cast<double>(run.step));
    if (!is_missing(run.seconds)) seconds.push_back(run.seconds);
    if (!is_missing(run.tokens)) tokens.push_back(run.tokens);
  }
  all.steps = median_of(std::move(steps));
  all.seconds = median_of(std::move(seconds));
  all.tokens = median_of(std::move(tokens));
  return all;
}

}  // namespace stepladder
