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
    progress_.add(steps, i);
    const double loss = loss_at(steps, i);
    if (is_missing(loss)) continue;
    if (!(loss <= target_loss_)) {
      reached_ = {.by_validation = reached_.by_validation};
      continue;
    }
    const bool is_held = reached_.step != 0 || !reached_.by_validation;
    if (reached_.step == 0)
      reached_ = {.step = steps.step[i],
                  .seconds = progress_.seconds(),
                  .tokens = progress_.tokens(),
                  .by_validation = reached_.by_validation};
    reached_.once = !is_held;
  }
}

TargetReached reach(const Run& run, const Series& series, double target_loss) {
  const bool validated = std::ranges::any_of(series.val_loss, [](double loss) { return !is_missing(loss); });
  TargetSearch search(run, target_loss, validated);
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
    all.once += run.once ? 1 : 0;
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
