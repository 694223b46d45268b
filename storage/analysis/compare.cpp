#include "storage/analysis/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "storage/analysis/recipe_facts.h"

namespace stepladder {
namespace {

constexpr std::size_t fewest_to_diverge = 8;

struct SharedSteps {
  std::vector<std::int64_t> step;
  std::vector<double> base_loss;
  std::vector<double> loss;
  std::int64_t first_nonfinite = 0;  // of the run, where the base's is finite or the run's stays so; 0: none
  bool base_is_lost = false;         // ends not finite, while the run's loss is
};

// Steps where both have a loss and both are finite.
SharedSteps shared_steps(const Series& base, const Series& run) {
  SharedSteps shared;
  std::int64_t lost_with_base = 0;  // since then neither was finite
  for (std::size_t i = 0, j = 0; i < base.size() && j < run.size();) {
    if (base.step[i] != run.step[j]) {
      base.step[i] < run.step[j] ? ++i : ++j;
      continue;
    }
    const double base_loss = base.loss[i++];
    const double loss = run.loss[j];
    const std::int64_t step = run.step[j++];
    if (is_missing(base_loss) || is_missing(loss)) continue;
    shared.base_is_lost = !std::isfinite(base_loss) && std::isfinite(loss);
    if (std::isfinite(base_loss) || std::isfinite(loss)) {
      lost_with_base = 0;
    } else if (lost_with_base == 0) {
      lost_with_base = step;
    }
    if (!std::isfinite(base_loss)) continue;
    if (!std::isfinite(loss)) {
      if (shared.first_nonfinite == 0) shared.first_nonfinite = step;
      continue;
    }
    shared.step.push_back(step);
    shared.base_loss.push_back(base_loss);
    shared.loss.push_back(loss);
  }
  if (shared.first_nonfinite == 0) shared.first_nonfinite = lost_with_base;
  return shared;
}

double mean_of_tail(const std::vector<double>& values) {
  const std::size_t tail = (values.size() + 3) / 4;
  return std::accumulate(values.end() - static_cast<std::ptrdiff_t>(tail), values.end(), 0.0) /
         static_cast<double>(tail);
}

double tail_gap(const SharedSteps& shared) {
  return shared.step.empty() ? missing : mean_of_tail(shared.loss) - mean_of_tail(shared.base_loss);
}

// The step after which the run stayed more than `band` above the base; 0 unless it ends higher than it began while the
// base does better.
std::int64_t unlearned_since(const SharedSteps& shared, double band) {
  if (shared.step.size() < fewest_to_diverge) return 0;
  const bool rose = mean_of_tail(shared.loss) > shared.loss.front() + band;
  const bool base_fell = mean_of_tail(shared.base_loss) < shared.base_loss.front();
  if (!rose || !base_fell) return 0;
  std::size_t since = shared.step.size();
  while (since > 0 && shared.loss[since - 1] - shared.base_loss[since - 1] > band) --since;
  return since == shared.step.size() ? 0 : shared.step[since];
}

// The variance of a median of k Gaussian figures, relative to that of their mean (1/k of one figure's): exact for one,
// within 3 % for odd k, slightly too large for even k.
double median_inefficiency(std::size_t k) {
  const auto n = static_cast<double>(k);
  return n * std::numbers::pi / (2 * n + std::numbers::pi - 2);
}

struct Spread {
  double squares = 0;  // of the logarithms around their mean
  double freedom = 0;
};

Spread spread_of(const std::vector<double>& figures) {
  if (figures.size() < 2) return {};
  std::vector<double> logs(figures.size());
  std::transform(figures.begin(), figures.end(), logs.begin(), [](double figure) { return std::log(figure); });
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  Spread spread{.freedom = static_cast<double>(logs.size() - 1)};
  for (const double x : logs) spread.squares += (x - mean) * (x - mean);
  return spread;
}

// The share of the variance between runs that remains in the median of those averaged.
double share_of(const Sample& sample) {
  return median_inefficiency(sample.averaged) / static_cast<double>(sample.averaged);
}

// Half the width, as a logarithm, of the interval that follows from the spread between runs; 0 without repeats.
double half_width_between_runs(const Sample& base, const Sample& run) {
  const Spread a = spread_of(base.repeats);
  const Spread b = spread_of(run.repeats);
  const double freedom = a.freedom + b.freedom;
  if (freedom < 1) return 0;
  const double variance = (a.squares + b.squares) / freedom;
  return t_critical(freedom) * std::sqrt(variance * (share_of(base) + share_of(run)));
}

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
                       std::int64_t tokens_per_step, double band) {
  const SharedSteps shared = shared_steps(base, run);
  LossParity parity;
  for (std::size_t i = 0; i < shared.step.size(); ++i) {
    const double gap = std::abs(shared.loss[i] - shared.base_loss[i]);
    if (!is_missing(parity.max_gap) && gap <= parity.max_gap) continue;
    parity.max_gap = gap;
    parity.at_step = shared.step[i];
  }
  const bool same_tokens = base_tokens_per_step > 0 && base_tokens_per_step == tokens_per_step;
  const std::int64_t unlearned = unlearned_since(shared, band);
  if (shared.first_nonfinite > 0) {
    parity.max_gap = std::numeric_limits<double>::infinity();
    parity.at_step = shared.first_nonfinite;
  } else {
    parity.tail_gap = tail_gap(shared);
  }

  if (!same_tokens || is_missing(parity.max_gap)) {
    parity.verdict = LossVerdict::not_comparable;
  } else if (shared.first_nonfinite > 0) {
    parity.verdict = LossVerdict::diverged;
  } else if (shared.base_is_lost) {
    parity.verdict = LossVerdict::not_comparable;
  } else if (unlearned > 0) {
    parity.verdict = LossVerdict::diverged;
    parity.at_step = unlearned;
  } else if (std::abs(parity.tail_gap) <= band) {
    parity.verdict = LossVerdict::same;
  } else {
    parity.verdict = parity.tail_gap < 0 ? LossVerdict::better : LossVerdict::worse;
  }
  return parity;
}

LossParity loss_parity(const Run& base_run, const Series& base, const Run& run, const Series& series, double band) {
  LossParity parity = loss_parity(base, base_run.tokens_per_step, series, run.tokens_per_step, band);
  const RecipeFacts a = recipe_facts(base_run);
  const RecipeFacts b = recipe_facts(run);
  const bool other_data = a.data && b.data && *a.data != *b.data;
  const bool other_vocabulary = a.vocab > 0 && b.vocab > 0 && a.vocab != b.vocab;
  if (other_data || other_vocabulary) parity.verdict = LossVerdict::not_comparable;
  return parity;
}

double loss_band(std::span<const Series* const> repeats) {
  if (repeats.size() < 2) return loss_tolerance_nats;
  std::vector<double> ends{0};
  for (const Series* repeat : repeats.subspan(1)) {
    const double gap = tail_gap(shared_steps(*repeats.front(), *repeat));
    if (std::isfinite(gap)) ends.push_back(gap);
  }
  if (ends.size() < 2) return loss_tolerance_nats;
  const auto n = static_cast<double>(ends.size());
  const double mean = std::accumulate(ends.begin(), ends.end(), 0.0) / n;
  double squares = 0;
  for (const double end : ends) squares += (end - mean) * (end - mean);
  return std::max(loss_tolerance_nats, t_critical(n - 1) * std::sqrt(2 * squares / (n - 1)));
}

double speedup(const Summary& base, const Summary& run) {
  const auto ratio = [](double numerator, double denominator) {
    return numerator > 0 && denominator > 0 ? numerator / denominator : missing;
  };
  if (is_missing(base.tokens_per_s) || is_missing(run.tokens_per_s)) return ratio(base.dt_ms_median, run.dt_ms_median);
  return ratio(run.tokens_per_s, base.tokens_per_s);
}

double break_even_steps(double setup_ms, double dt_before_ms, double dt_after_ms) {
  if (!(setup_ms >= 0) || !(dt_after_ms > 0) || !(dt_before_ms > dt_after_ms)) return missing;
  return std::ceil(setup_ms / (dt_before_ms - dt_after_ms));
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::same:
      return "same";
    case Verdict::slower:
      return "slower";
    case Verdict::cannot_tell:
      break;
  }
  return "cannot-tell";
}

Interval own_interval(const Sample& sample) {
  Interval interval = median_interval(sample.steps);
  if (interval.known()) interval = {interval.low / sample.steps.median, interval.high / sample.steps.median};
  const Spread spread = spread_of(sample.repeats);
  if (spread.freedom < 1) return interval;
  const double half = t_critical(spread.freedom) * std::sqrt(spread.squares / spread.freedom * share_of(sample));
  if (!interval.known()) return {std::exp(-half), std::exp(half)};
  return {std::min(interval.low, std::exp(-half)), std::max(interval.high, std::exp(half))};
}

Verdict verdict_of(double factor, const Interval& ci95, double noise_floor) {
  if (is_missing(factor) || !ci95.known()) return Verdict::cannot_tell;
  const double floor = 1 + noise_floor;
  const double clear = 1 + noise_floor / 2;
  if (ci95.low > clear && factor >= floor) return Verdict::faster;
  if (ci95.high < 1 / clear && factor <= 1 / floor) return Verdict::slower;
  return ci95.low >= 1 / floor && ci95.high <= floor ? Verdict::same : Verdict::cannot_tell;
}

SpeedUp judge_speedup(double factor, const Sample& base, const Sample& run, double noise_floor) {
  SpeedUp speedup{.factor = factor, .ci95 = ratio_interval(factor, base.steps, run.steps)};
  const double half = half_width_between_runs(base, run);
  if (half > 0 && !is_missing(factor)) {
    const Interval between{factor * std::exp(-half), factor * std::exp(half)};
    if (!speedup.ci95.known()) speedup.ci95 = between;
    speedup.ci95.low = std::min(speedup.ci95.low, between.low);
    speedup.ci95.high = std::max(speedup.ci95.high, between.high);
  }
  if (speedup.ci95.known() && !(speedup.ci95.high <= widest_interval * speedup.ci95.low)) speedup.ci95 = {};
  speedup.verdict = verdict_of(factor, speedup.ci95, noise_floor);
  return speedup;
}

}  // namespace stepladder
