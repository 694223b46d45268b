// The winner's curse of a sweep. The candidates that can't be distinguished from the best count as equal to it, which
// corrects too much rather than too little where they aren't.
#include "storage/analysis/verdict/picked_best.h"

#include <algorithm>
#include <cmath>

#include "storage/analysis/means/student_t.h"

namespace stepladder {
namespace {

// The mean of the largest of n values from a standard normal distribution.
double expected_largest(std::size_t n) {
  const auto count = static_cast<double>(n);
  return n < 2 ? 0 : normal_quantile((count - 0.375) / (count + 0.25));
}

}  // namespace

PickedBest picked_best(std::span<const Candidate> candidates, bool higher_is_better, const RunSpread& spread,
                       const RunSpread& of_runs) {
  PickedBest best;
  const double sign = higher_is_better ? -1 : 1;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!std::isfinite(candidates[i].mean) || candidates[i].runs == 0) continue;
    if (best.of++ == 0 || sign * candidates[i].mean < sign * candidates[best.place].mean) best.place = i;
  }
  if (best.of < 2 || !spread.known() || !(spread.variance() > 0)) return best;
  const Candidate& picked = candidates[best.place];
  const double tests = static_cast<double>(best.of - 1);
  const double apart = student_t_quantile(1 - 0.025 / tests, std::max(spread.freedom, 1.0));
  const auto variance_of = [&](const Candidate& each) { return spread.variance() / static_cast<double>(each.runs); };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == best.place || !std::isfinite(candidates[i].mean) || candidates[i].runs == 0) continue;
    const double error = std::sqrt(variance_of(candidates[i]) + variance_of(picked));
    if (std::abs(candidates[i].mean - picked.mean) <= apart * error) ++best.ties;
  }
  const double error = std::sqrt(variance_of(picked));
  best.corrected = picked.mean + sign * expected_largest(best.ties + 1) * error;
  if (of_runs.known()) {
    const double half = t_critical(of_runs.freedom) * std::sqrt(of_runs.variance() / static_cast<double>(picked.runs));
    best.ci95 = {best.corrected - half, best.corrected + half};
  }
  best.spread_from = spread.from;
  return best;
}

}  // namespace stepladder
