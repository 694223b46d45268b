// Intervals and verdicts of speed-ups, computed on logarithms. Scatter of the steps and spread between runs are
// combined by the rules in compare.h; docs/measuring.md derives them. Verdicts of one table pass through hold_together
// (Holm), which may withdraw them.
#include "storage/analysis/compare.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "storage/analysis/means/student_t.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

// The variance of a median of k Gaussian figures, relative to that of their mean (1/k of one figure's): exact for one,
// within 3 % for odd k, slightly too large for even k.
double median_inefficiency(std::size_t k) {
  const auto n = static_cast<double>(k);
  return n * std::numbers::pi / (2 * n + std::numbers::pi - 2);
}

// The share of the variance between runs that remains in the median of those averaged.
double share_of(std::size_t averaged) {
  return median_inefficiency(averaged) / static_cast<double>(averaged);
}

double critical(double freedom, double error) {
  return student_t_quantile(1 - error / 2, std::max(freedom, 1.0));
}

// The distances of an interval's ends below and above its centre, as logarithms.
struct Halves {
  double low = 0;
  double high = 0;
};

Halves halves_of(const Interval& interval, double centre) {
  return {std::log(centre / interval.low), std::log(interval.high / centre)};
}

// The interval by the scatter of the steps alone, without the effect of rounding.
Halves halves_by_steps(double factor, MedianSample base, MedianSample run, double error) {
  base.resolution = run.resolution = 0;
  const Halves halves = halves_of(ratio_interval(factor, base, run), factor);
  const double wider = normal_quantile(1 - error / 2) / normal_quantile(0.975);
  return {wider * halves.low, wider * halves.high};
}

// The spread between runs that an interval includes.
struct Between {
  RunSpread spread;
  double of_pair = 0;    // the variance of the logarithm of the factor of one run a side
  double of_factor = 0;  // and what of it is left in the factor
};

RunSpread spread_of_pairs(const Sample& base, const Sample& run) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(base.repeats.size(), run.repeats.size()); ++i)
    ratios.push_back(run.repeats[i] / base.repeats[i]);
  return spread_of(ratios);
}

Between between_runs(const Sample& base, const Sample& run, const SpeedUpRules& rules) {
  const bool both = std::min(base.repeats.size(), run.repeats.size()) >= 2;
  if (both && rules.looks.in_pairs && !rules.looks.runs.empty()) {
    const RunSpread pairs = spread_of_pairs(base, run);
    if (pairs.known())
      return {pairs, pairs.variance(), pairs.variance() * share_of(std::min(base.averaged, run.averaged))};
  }
  RunSpread spread = pooled(spread_of(base.repeats), spread_of(run.repeats));
  // One side's repeats that scatter more than twice as much as is known deny it.
  const bool denies = spread.known() && spread.variance() > 4 * rules.known.variance();
  if (rules.known.known() && !(both && spread.known()) && !denies) spread = rules.known;
  if (!spread.known()) return {};
  return {spread, 2 * spread.variance(), spread.variance() * (share_of(base.averaged) + share_of(run.averaged))};
}

// The number of further runs of each side that would bring half the width below the distance to the nearest verdict, or
// to half of the noise floor where the factor is near its edge.
std::int64_t needed_runs(const SpeedUp& found, double of_pair, double resolution, const SpeedUpRules& rules) {
  const double floor = std::log1p(rules.noise_floor);
  const double clear = std::log1p(rules.noise_floor / 2);
  const double off = std::abs(std::log(found.factor));
  const double distance = std::max(off >= floor ? off - clear : floor - off, clear) - resolution;
  if (!(distance > 0) || !(of_pair > 0)) return 0;
  return more_runs_for(distance, found.runs, [&](std::size_t n) {
    return critical(2 * static_cast<double>(n) - 2, rules.looks.error_at(n)) * std::sqrt(of_pair * share_of(n));
  });
}

}  // namespace

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
  return by_enum<Verdict, std::string_view>("faster", "same", "slower", "cannot-tell")[verdict];
}

Looks::Looks(std::size_t most, std::size_t first) {
  constexpr std::size_t each = 5;
  for (std::size_t n = std::max<std::size_t>(first, 2); n < most; n = n < each ? n + 1 : (7 * n + 4) / 5)
    runs.push_back(n);
  runs.push_back(std::max<std::size_t>(most, 2));
}

bool Looks::is_at(std::size_t number) const {
  return runs.empty() || std::ranges::binary_search(runs, number) || number > runs.back();
}

double Looks::error_at(std::size_t number) const {
  if (runs.empty()) return 0.05;
  const auto after = std::ranges::upper_bound(runs, number);
  const std::size_t look = after == runs.begin() ? runs.front() : *std::prev(after);
  return 0.05 * static_cast<double>(look) /
         static_cast<double>(std::accumulate(runs.begin(), runs.end(), std::size_t{0}));
}

Interval own_interval(const Sample& sample, const RunSpread& known) {
  Interval interval = median_interval(sample.steps);
  if (interval.known()) interval = {interval.low / sample.steps.median, interval.high / sample.steps.median};
  const RunSpread own = spread_of(sample.repeats);
  const RunSpread& spread = own.known() ? own : known;
  if (!spread.known() || (!own.known() && !interval.known())) return interval;
  const double half = critical(spread.freedom, 0.05) * std::sqrt(spread.variance() * share_of(sample.averaged));
  const Halves by_steps = interval.known() ? halves_of(interval, 1) : Halves{};
  const auto together = [&](double steps) { return own.known() ? std::max(steps, half) : std::hypot(steps, half); };
  const Interval both{std::exp(-together(by_steps.low)), std::exp(together(by_steps.high))};
  return both.high <= widest_interval * both.low ? both : Interval{};
}

Verdict verdict_of(double factor, const Interval& ci95, double noise_floor) {
  if (is_missing(factor) || !ci95.known()) return Verdict::cannot_tell;
  const double floor = 1 + noise_floor;
  const double clear = 1 + noise_floor / 2;
  if (ci95.low > clear && factor >= floor) return Verdict::faster;
  if (ci95.high < 1 / clear && factor <= 1 / floor) return Verdict::slower;
  return ci95.low >= 1 / floor && ci95.high <= floor ? Verdict::same : Verdict::cannot_tell;
}

SpeedUp judge_speedup(double factor, const Sample& base, const Sample& run, const SpeedUpRules& rules) {
  SpeedUp speedup{.factor = factor, .runs = std::min(base.averaged, run.averaged)};
  const Between between = between_runs(base, run, rules);
  const bool by_repeats = between.spread.from == SpreadFrom::repeats;
  const bool by_steps = base.steps.known() && run.steps.known();
  if (is_missing(factor) || (!by_steps && !by_repeats)) return speedup;
  const double error = rules.looks.error_at(speedup.runs);
  const Halves steps = by_steps ? halves_by_steps(factor, base.steps, run.steps, error) : Halves{};
  const double freedom = between.spread.known() ? between.spread.freedom : 1e6;
  const double half = critical(freedom, error) * std::sqrt(between.of_factor);
  const double resolution = base.steps.resolution + run.steps.resolution;
  const auto together = [&](double by_steps_alone) {
    return by_repeats ? std::max(by_steps_alone, half) : std::hypot(by_steps_alone, half);
  };
  const Halves scatter{together(steps.low), together(steps.high)};
  const Interval ci95{factor * std::exp(-scatter.low - resolution), factor * std::exp(scatter.high + resolution)};
  if (!(ci95.high <= widest_interval * ci95.low)) return speedup;
  speedup.ci95 = ci95;
  speedup.spread_from = between.spread.from;
  speedup.verdict = verdict_of(factor, ci95, rules.noise_floor);
  const double beyond = std::abs(std::log(factor)) - std::log1p(rules.noise_floor / 2) - resolution;
  const double side = factor > 1 ? scatter.low : scatter.high;
  speedup.p = !(beyond > 0) ? 1 : side > 0 ? 2 * student_t_cdf(-beyond / side * critical(freedom, error), freedom) : 0;
  speedup.p = std::min(1.0, speedup.p * 0.05 / error);  // a look has only its share of the error
  if (speedup.verdict != Verdict::cannot_tell) return speedup;
  const double of_steps = std::max(steps.low, steps.high) / normal_quantile(1 - error / 2);
  speedup.needed_runs =
      needed_runs(speedup, between.of_pair + (by_repeats ? 0 : of_steps * of_steps), resolution, rules);
  return speedup;
}

double smallest_gain(const RunSpread& known, std::size_t runs, double noise_floor) {
  if (!known.known() || runs == 0) return missing;
  const auto gain = [&](std::size_t n) {
    const double error = std::sqrt(2 * known.variance() * share_of(n));
    const double freedom = n > 1 ? 2 * static_cast<double>(n) - 2 : known.freedom;
    // The noncentral t that exceeds the critical value in 95 % of cases (Johnson and Welch 1940).
    const double critical_t = critical(freedom, 0.05), found = normal_quantile(0.95);
    const double beyond =
        critical_t * (1 - 1 / (4 * freedom)) + found * std::sqrt(1 + critical_t * critical_t / (2 * freedom));
    return std::expm1(std::max(std::log1p(noise_floor / 2) + beyond * error, std::log1p(noise_floor) + found * error));
  };
  // Two of each have a spread of two degrees of freedom, one has the known one.
  return runs > 1 ? gain(runs) : std::max(gain(1), gain(2));
}

// The unjudged are worst for a verdict if their p is larger than all that are known, and best if it is 0. One whose p
// lies between and that fails itself changes nothing: its p is at most the next one's, whose limit is not above its
// own.
void hold_together(std::span<SpeedUp* const> family, std::size_t unjudged) {
  std::vector<SpeedUp*> tested;
  for (SpeedUp* each : family)
    if (!is_missing(each->p)) tested.push_back(each);
  std::ranges::stable_sort(tested, [](const SpeedUp* a, const SpeedUp* b) { return a->p < b->p; });
  bool holds = true;
  bool may_hold = true;
  for (std::size_t i = 0; i < tested.size(); ++i) {
    SpeedUp& each = *tested[i];
    const std::size_t left = tested.size() - i;
    each.compared = tested.size() + unjudged;
    holds = holds && each.p <= 0.05 / static_cast<double>(left + unjudged);
    may_hold = may_hold && each.p <= 0.05 / static_cast<double>(left);
    if (holds || (each.verdict != Verdict::faster && each.verdict != Verdict::slower)) continue;
    each.verdict = Verdict::cannot_tell;
    each.is_open = may_hold;
  }
}

}  // namespace stepladder
