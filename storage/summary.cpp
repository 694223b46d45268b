#include "storage/summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stepladder {
namespace {

double smaller(double a, double b) {
  return is_missing(a) ? b : std::min(a, b);
}

// The tokens of each of these steps where they all have the same, else 0: a changing batch has no one figure.
std::int64_t common_tokens(const Series& series, std::size_t first) {
  if (first >= series.size()) return 0;
  const bool same = std::all_of(series.tokens.begin() + static_cast<std::ptrdiff_t>(first), series.tokens.end(),
                                [&](std::int64_t tokens) { return tokens == series.tokens[first]; });
  return same ? series.tokens[first] : 0;
}

}  // namespace

std::int64_t warmup_steps(std::int64_t steps, std::int64_t asked) {
  if (asked >= 0) return std::clamp<std::int64_t>(asked, 0, std::max<std::int64_t>(steps - 1, 0));
  return steps < 4 ? 0 : std::clamp<std::int64_t>(steps / 10, 1, 10);
}

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

Summary summarise(const Series& series, std::int64_t asked_warmup, std::int64_t tokens_per_step) {
  Summary summary;
  summary.steps = static_cast<std::int64_t>(series.size());
  summary.warmup_steps = warmup_steps(summary.steps, asked_warmup);
  if (series.empty()) return summary;
  summary.first_step = series.step.front();
  summary.last_step = series.step.back();

  for (std::size_t i = 0; i < series.size(); ++i) {
    const double loss = series.loss[i];
    if (!is_missing(loss)) {
      if (is_missing(summary.loss_first)) summary.loss_first = loss;
      summary.loss_last = loss;
      if (std::isfinite(loss)) summary.loss_min = smaller(summary.loss_min, loss);
    }
    const double val_loss = series.val_loss[i];
    if (!is_missing(val_loss)) {
      summary.val_loss_last = val_loss;
      if (std::isfinite(val_loss)) summary.val_loss_min = smaller(summary.val_loss_min, val_loss);
    }
  }

  const auto first_steady = static_cast<std::size_t>(summary.warmup_steps);
  std::vector<double> steady;
  for (std::size_t i = first_steady; i < series.size(); ++i)
    if (series.dt_ms[i] > 0 && std::isfinite(series.dt_ms[i])) steady.push_back(series.dt_ms[i]);
  if (steady.empty()) return summary;
  summary.dt_ms_median = quantile(steady, 0.5);
  summary.dt_ms_p25 = quantile(steady, 0.25);
  summary.dt_ms_p75 = quantile(steady, 0.75);

  if (tokens_per_step <= 0) tokens_per_step = common_tokens(series, first_steady);
  if (tokens_per_step <= 0) return summary;
  const auto tokens_per_s = [&](double dt_ms) { return static_cast<double>(tokens_per_step) * 1000.0 / dt_ms; };
  summary.tokens_per_s = tokens_per_s(summary.dt_ms_median);
  summary.tokens_per_s_p25 = tokens_per_s(summary.dt_ms_p75);
  summary.tokens_per_s_p75 = tokens_per_s(summary.dt_ms_p25);
  return summary;
}

}  // namespace stepladder
