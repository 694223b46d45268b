#include "storage/summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "storage/change_point.h"

namespace stepladder {
namespace {

double smaller(double a, double b) {
  return is_missing(a) ? b : std::min(a, b);
}

bool has_time(const Series& series, std::size_t i) {
  return series.dt_ms[i] > 0 && std::isfinite(series.dt_ms[i]);
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

std::vector<double> steady_dt_ms(const Series& series, const Summary& summary) {
  std::vector<double> steady;
  for (auto i = static_cast<std::size_t>(summary.warmup_steps); i < series.size(); ++i)
    if (has_time(series, i)) steady.push_back(series.dt_ms[i]);
  return steady;
}

Summary summarise(const Series& series, std::int64_t asked_warmup, std::int64_t tokens_per_step) {
  Summary summary;
  summary.steps = static_cast<std::int64_t>(series.size());
  summary.warmup_steps = warmup_steps(summary.steps, asked_warmup);
  if (series.empty()) return summary;
  if (asked_warmup < 0) {
    const auto end = warmup_end(series.dt_ms, static_cast<std::size_t>(summary.warmup_steps));
    summary.warmup_steps = static_cast<std::int64_t>(end);
  }
  summary.first_step = series.step.front();
  summary.last_step = series.step.back();

  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!has_time(series, i)) ++summary.untimed_steps;
    if (series.dt_ms[i] < 0 && summary.backwards_step == 0) summary.backwards_step = series.step[i];
    const double loss = series.loss[i];
    if (!is_missing(loss)) {
      if (!std::isfinite(loss) && summary.nonfinite_steps++ == 0) summary.first_nonfinite_step = series.step[i];
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
  std::vector<double> steady = steady_dt_ms(series, summary);
  if (steady.empty()) return summary;
  summary.drift = std::expm1(log_trend(steady) * static_cast<double>(steady.size() - 1));
  const Spikes spikes = find_spikes(series, first_steady);
  summary.spikes = static_cast<std::int64_t>(spikes.at.size());
  summary.spike_period = static_cast<std::int64_t>(spikes.period);
  summary.pauses = static_cast<std::int64_t>(spikes.pauses);
  summary.dt_ms_p5 = quantile(steady, 0.05);
  summary.dt_ms_p95 = quantile(steady, 0.95);
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
