#include "storage/analysis/target_search.h"

#include <algorithm>

#include "storage/analysis/statistics.h"

namespace stepladder {

double TargetSearch::loss_at(const Series& steps, std::size_t i) {
  constexpr std::size_t window = 5;
  if (validated_) return steps.val_loss[i];
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
    reached_ = {.step = steps.step[i],
                .seconds = is_missing(milliseconds_) ? missing : milliseconds_ / 1000,
                .tokens = tokens_};
  }
}

TargetReached reach(const Series& series, std::int64_t tokens_per_step, double target_loss) {
  const bool validated =
      std::any_of(series.val_loss.begin(), series.val_loss.end(), [](double loss) { return !is_missing(loss); });
  TargetSearch search(tokens_per_step, target_loss, validated);
  search.add(series);
  return search.reached();
}

}  // namespace stepladder
