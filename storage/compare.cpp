#include "storage/compare.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace stepladder {
namespace {

constexpr double tolerance_nats = 0.02;

}  // namespace

std::string_view to_string(LossVerdict verdict) {
  switch (verdict) {
    case LossVerdict::same:
      return "same";
    case LossVerdict::better:
      return "better";
    case LossVerdict::worse:
      return "worse";
    case LossVerdict::diverged:
      return "diverged";
    case LossVerdict::not_comparable:
      break;
  }
  return "not-comparable";
}

LossParity loss_parity(const Series& base, std::int64_t base_tokens_per_step, const Series& run,
                       std::int64_t tokens_per_step) {
  LossParity parity;
  bool diverged = false;
  std::vector<double> gaps;  // loss - base loss at the shared steps where both are finite

  for (std::size_t i = 0, j = 0; i < base.size() && j < run.size();) {
    if (base.step[i] != run.step[j]) {
      base.step[i] < run.step[j] ? ++i : ++j;
      continue;
    }
    const double base_loss = base.loss[i++];
    const double loss = run.loss[j];
    const std::int64_t step = run.step[j++];
    if (is_missing(base_loss) || is_missing(loss) || !std::isfinite(base_loss)) continue;
    if (!std::isfinite(loss)) {
      if (!diverged) {
        parity.max_gap = std::numeric_limits<double>::infinity();
        parity.at_step = step;
      }
      diverged = true;
      continue;
    }
    const double gap = loss - base_loss;
    if (is_missing(parity.max_gap) || std::abs(gap) > parity.max_gap) {
      parity.max_gap = std::abs(gap);
      parity.at_step = step;
    }
    gaps.push_back(gap);
  }

  if (!gaps.empty() && !diverged) {
    const std::size_t tail = (gaps.size() + 3) / 4;
    parity.tail_gap =
        std::accumulate(gaps.end() - static_cast<std::ptrdiff_t>(tail), gaps.end(), 0.0) / static_cast<double>(tail);
  }

  const bool same_tokens = base_tokens_per_step > 0 && base_tokens_per_step == tokens_per_step;
  if (!same_tokens || (gaps.empty() && !diverged))
    parity.verdict = LossVerdict::not_comparable;
  else if (diverged)
    parity.verdict = LossVerdict::diverged;
  else if (std::abs(parity.tail_gap) <= tolerance_nats)
    parity.verdict = LossVerdict::same;
  else
    parity.verdict = parity.tail_gap < 0 ? LossVerdict::better : LossVerdict::worse;
  return parity;
}

double speedup(const Summary& base, const Summary& run) {
  const auto ratio = [](double numerator, double denominator) {
    return numerator > 0 && denominator > 0 ? numerator / denominator : missing;
  };
  if (is_missing(base.tokens_per_s) || is_missing(run.tokens_per_s)) return ratio(base.dt_ms_median, run.dt_ms_median);
  return ratio(run.tokens_per_s, base.tokens_per_s);
}

}  // namespace stepladder
