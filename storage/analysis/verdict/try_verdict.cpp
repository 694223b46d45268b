// The rules of `stepladder try`. One run of the change is compared with what the runs just before foretell of the kept
// state; only if it looks better do both run in turns, and only these pairs count as evidence. So a drift of the
// machine is no evidence, and hides little. The numbers at the top were chosen by simulation
// (tests/storage/analysis/verdict/try_verdict_test.cpp, docs/try.md).
#include "storage/analysis/verdict/try_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "storage/analysis/means/mean_test.h"
#include "storage/analysis/means/student_t.h"

namespace stepladder {
namespace {

// Of the gains' sizes that are likely, each with its weight: their variances, in variances of one run.
constexpr std::array<std::pair<double, double>, 3> size_priors{{{0.6, 6}, {0.25, 40}, {0.15, 2000}}};
constexpr double interval_prior = 6;
constexpr std::size_t fewest_rounds = 2;      // of a kept change
constexpr double evidence_without_best = 10;  // an e-value
constexpr double promising = 1.5;             // standard errors above the kept state's mean
constexpr std::size_t level_runs = 5;         // whose median is how fast the machine is now
constexpr std::size_t fewest_levels = 6;      // that tell how well such a median foretells the next run
constexpr std::size_t most_levels = 40;
// Of a standard deviation from the median of absolute deviations, against one from squares, for normal values
// (Rousseeuw and Croux, "Alternatives to the median absolute deviation", 1993).
constexpr double efficiency_of_median = 0.37;
constexpr std::size_t fewest_neighbours = 12;  // runs whose differences tell the noise better than the states' means
constexpr double one_look_error = 0.01;        // of the interval of the first run; the rest of 5 % is the turns'
constexpr double error = 0.05;
// Of the share of the error that the n-th change gets: (n + 5)^-1.5, which is about even over the first changes.
constexpr double decay = 1.5, delay = 5;

// By which one run differs from the next: each run's difference to the one before it, in pairs that share no run. A
// drift of the machine is no part of it, as it is none of the turns' differences; a change that does something makes it
// larger.
RunSpread spread_of_neighbours(const std::vector<double>& recent) {
  RunSpread spread;
  for (std::size_t i = recent.size(); i >= 2; i -= 2) {
    const double difference = recent[i - 1] - recent[i - 2];
    spread.squares += difference * difference / 2;
    ++spread.freedom;
  }
  return spread;
}

// Squares of the pairs' differences, halved: of one run.
RunSpread spread_of_pairs(const TryRuns& runs, std::size_t rounds) {
  RunSpread spread = runs.recent.size() < fewest_neighbours ? RunSpread{} : spread_of_neighbours(runs.recent);
  if (!(spread.squares > 0)) spread = runs.noise;
  std::vector<double> differences;
  for (std::size_t i = 0; i < rounds; ++i) differences.push_back(runs.changed[i] - runs.beside[i]);
  const RunSpread pairs = rounds == 0 ? RunSpread{} : spread_of_repeats(differences, runs.beside.front());
  if (!pairs.known()) return spread;
  const double freedom = pairs.freedom, squares = pairs.squares / 2;
  // Where the turns scatter clearly more than the runs before, these don't know the noise of now.
  const bool is_noisier = freedom >= 2 && spread.known() && squares / freedom > 6 * spread.variance();
  if (is_noisier) spread = {};
  spread.squares += squares;
  spread.freedom += freedom;
  return spread;
}

GainEvidence evidence_of_pairs(const TryRuns& runs, std::size_t rounds) {
  double sum = 0;
  for (std::size_t i = 0; i < rounds; ++i) sum += runs.changed[i] - runs.beside[i];
  return {.gain = sum / static_cast<double>(rounds),
          .variance = 2 / static_cast<double>(rounds),
          .noise = spread_of_pairs(runs, rounds)};
}

// One run that others disturbed must not make a gain: there has to be some evidence without the best turn.
bool holds_without_best(const TryRuns& runs) {
  TryRuns rest = runs;
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.beside.size(); ++i)
    if (runs.changed[i] - runs.beside[i] > runs.changed[best] - runs.beside[best]) best = i;
  rest.changed.erase(rest.changed.begin() + static_cast<std::ptrdiff_t>(best));
  rest.beside.erase(rest.beside.begin() + static_cast<std::ptrdiff_t>(best));
  const GainEvidence evidence = evidence_of_pairs(rest, rest.beside.size());
  return evidence.gain > 0 && e_value(evidence) >= evidence_without_best;
}

double standard_error(const GainEvidence& evidence) {
  return std::sqrt(evidence.variance * evidence.noise.variance());
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// What the runs just before foretell of another one of the kept state: machines drift over minutes by more than runs
// beside each other differ, and most changes do nothing. `spread`: of such a forecast's error, by its median.
struct Forecast {
  double level = missing;
  RunSpread spread;
  bool known() const { return !is_missing(level); }
};

Forecast forecast_from(const std::vector<double>& recent) {
  Forecast forecast;
  if (recent.size() < level_runs + fewest_levels) return forecast;
  const auto level_before = [&](std::size_t i) {
    return median_of({recent.begin() + std::ptrdiff_t(i - level_runs), recent.begin() + std::ptrdiff_t(i)});
  };
  std::vector<double> errors;
  for (std::size_t i = recent.size(); i > level_runs && errors.size() < most_levels; --i)
    errors.push_back(std::abs(recent[i - 1] - level_before(i - 1)));
  const double deviation = 1.4826 * median_of(errors);  // the standard deviation of normal errors
  if (!(deviation > 0)) return forecast;
  forecast.level = level_before(recent.size());
  forecast.spread.freedom = efficiency_of_median * static_cast<double>(errors.size());
  forecast.spread.squares = deviation * deviation * forecast.spread.freedom;
  return forecast;
}

// The turns' evidence with the gain that is most likely: the changed runs against all runs of the kept state, or those
// just before, as far as the turns agree with that within their standard error. For guesses at what more turns would
// show; only the turns are evidence.
GainEvidence likely(const TryRuns& runs, GainEvidence pairs) {
  std::vector<double> kept = runs.kept;
  if (forecast_from(runs.recent).known()) kept.assign(runs.recent.end() - level_runs, runs.recent.end());
  kept.insert(kept.end(), runs.beside.begin(), runs.beside.end());
  const double gain = figures_of(runs.changed).mean - figures_of(kept).mean, margin = standard_error(pairs);
  pairs.gain = std::clamp(gain, pairs.gain - margin, pairs.gain + margin);
  return pairs;
}

// The rounds at which the gain, if it stays as it looks, has enough evidence; 0: more than a thousand.
std::size_t rounds_for(const GainEvidence& now, double threshold) {
  if (!(now.gain > 0)) return 0;
  std::size_t low = 1, high = 1;
  const auto is_enough = [&](std::size_t rounds) {
    GainEvidence then = now;
    then.variance = 2 / static_cast<double>(rounds);
    const double more = static_cast<double>(rounds) - 2 / now.variance;
    then.noise.freedom = std::max(1.0, now.noise.freedom + more);
    then.noise.squares = now.noise.variance() * then.noise.freedom;
    return e_value(then) >= threshold;
  };
  while (!is_enough(high)) {
    if (high > 1000) return 0;
    low = high;
    high *= 2;
  }
  while (low + 1 < high) {
    const std::size_t middle = (low + high) / 2;
    (is_enough(middle) ? high : low) = middle;
  }
  return is_enough(low) ? low : high;
}

// About how many more turns than these the gain needs, if it stays as it looks.
std::int64_t more_turns(const GainEvidence& evidence, std::size_t done, double threshold) {
  const std::size_t rounds = rounds_for(evidence, threshold);
  return rounds > done ? static_cast<std::int64_t>(rounds - done) : 0;
}

TryOpinion ended(TryEnd end, const GainEvidence& evidence, double threshold) {
  TryOpinion opinion{.end = end, .gain = evidence.gain, .e_value = e_value(evidence)};
  opinion.ci95 = anytime_interval(evidence, error - one_look_error);
  if (end == TryEnd::kept)
    opinion.gain = shrunk_gain(evidence);
  else
    opinion.needed_runs = more_turns(evidence, static_cast<std::size_t>(std::lround(2 / evidence.variance)), threshold);
  return opinion;
}

// The change's first run against what those just before foretell, else against all runs of the kept state; looked at
// once.
GainEvidence evidence_of_first(const TryRuns& runs) {
  if (const Forecast forecast = forecast_from(runs.recent); forecast.known())
    return {.gain = runs.changed.front() - forecast.level, .variance = 1, .noise = forecast.spread};
  std::vector<double> kept = runs.kept;
  kept.insert(kept.end(), runs.beside.begin(), runs.beside.end());
  const SampleFigures figures = figures_of(kept);
  return {.gain = runs.changed.front() - figures.mean,
          .variance = 1 + 1 / static_cast<double>(figures.n),
          .noise = runs.noise};
}

TryOpinion of_first(TryEnd end, const TryRuns& runs, double threshold) {
  const GainEvidence first = evidence_of_first(runs);
  TryOpinion opinion{.end = end, .gain = first.gain, .e_value = e_value(first)};
  const double half = student_t_quantile(1 - one_look_error / 2, first.noise.freedom) * standard_error(first);
  opinion.ci95 = {first.gain - half, first.gain + half};
  const std::size_t done = runs.beside.size();
  const GainEvidence turns{.gain = first.gain, .variance = 2, .noise = spread_of_pairs(runs, done)};
  if (end != TryEnd::worse) opinion.needed_runs = more_turns(turns, done, threshold);
  return opinion;
}

bool is_below(const GainEvidence& evidence, double probability) {
  return evidence.gain < -student_t_quantile(1 - probability, evidence.noise.freedom) * standard_error(evidence);
}

// Of a half-normal prior of the gain's size with this variance, in variances of one run.
double e_value_at(const GainEvidence& evidence, double prior) {
  const double freedom = evidence.noise.freedom, squares = evidence.noise.squares;
  if (!(freedom > 0) || !(squares > 0) || !(evidence.variance > 0) || !std::isfinite(evidence.gain)) return 0;
  const double ratio = prior / evidence.variance;
  const double x = evidence.gain * evidence.gain / (evidence.variance * squares);
  const double log_two_sided =
      -0.5 * std::log1p(ratio) + (freedom + 1) / 2 * (std::log1p(x) - std::log1p(x / (1 + ratio)));
  // The posterior of the gain is Student's, with one more degree of freedom.
  const double middle = evidence.gain * ratio / (1 + ratio);
  const double scale =
      std::sqrt(evidence.variance * ratio / (1 + ratio) * squares * (1 + x / (1 + ratio)) / (freedom + 1));
  return 2 * student_t_cdf(middle / scale, freedom + 1) * std::exp(std::min(log_two_sided, 700.0));
}

}  // namespace

double e_value(const GainEvidence& evidence) {
  double sum = 0;
  for (const auto& [weight, prior] : size_priors) sum += weight * e_value_at(evidence, prior);
  return sum;
}

double shrunk_gain(const GainEvidence& evidence) {
  const double variance = evidence.variance * evidence.noise.variance();
  const double square = evidence.gain * evidence.gain;
  return square > variance ? evidence.gain * (1 - variance / square) : 0;
}

Interval anytime_interval(const GainEvidence& evidence, double error) {
  const double freedom = evidence.noise.freedom, squares = evidence.noise.squares;
  if (!(freedom > 0) || !(squares > 0) || !(evidence.variance > 0) || !std::isfinite(evidence.gain)) return {};
  const double one_more = 1 + interval_prior / evidence.variance;
  const double q = std::pow(std::sqrt(one_more) / error, 2 / (freedom + 1));
  if (!(q < one_more)) return {};
  const double half = std::sqrt((q - 1) / (1 - q / one_more) * evidence.variance * squares);
  return {evidence.gain - half, evidence.gain + half};
}

double needed_e_value(std::size_t number, std::size_t kept, FalseKeeps rule) {
  constexpr double sum = 0.851929149262;  // of (n + 5)^-1.5, all n: Hurwitz's zeta(1.5, 6)
  const double share = std::pow(static_cast<double>(number) + delay, -decay) / sum;
  return 1 / (error * share * (rule == FalseKeeps::few ? static_cast<double>(kept + 1) : 1));
}

TryOpinion judge_try(const TryRuns& runs, double threshold, std::size_t most_rounds) {
  if (runs.changed.empty()) return {.step = TryStep::run_changed};
  const GainEvidence first = evidence_of_first(runs);
  const bool has_noise = runs.noise.known() && runs.noise.squares > 0;
  if (!has_noise) {
    TryOpinion opinion{.end = TryEnd::equal_repeats, .gain = first.gain};
    return opinion;
  }
  const std::size_t rounds = std::min(runs.changed.size(), runs.beside.size());
  if (rounds == 0) {
    if (first.gain >= promising * standard_error(first) || is_below(first, one_look_error / 2))
      return {.step = TryStep::run_kept};
    return of_first(TryEnd::no_sign, runs, threshold);
  }
  const GainEvidence pairs = evidence_of_pairs(runs, rounds);
  if (rounds == 1 && runs.changed.size() == 1 && pairs.gain < promising * standard_error(pairs)) {
    const bool is_worse = is_below(first, one_look_error / 2) && is_below(pairs, error);
    if (is_worse || !(pairs.gain > 0)) return of_first(is_worse ? TryEnd::worse : TryEnd::no_sign, runs, threshold);
  }
  if (runs.changed.size() != runs.beside.size())
    return {.step = runs.changed.size() > rounds ? TryStep::run_kept : TryStep::run_changed};
  if (e_value(pairs) >= threshold && rounds >= fewest_rounds && holds_without_best(runs))
    return ended(TryEnd::kept, pairs, threshold);
  if (rounds >= most_rounds) return ended(TryEnd::rounds_over, pairs, threshold);
  const std::size_t needed = rounds_for(likely(runs, pairs), threshold);
  if (needed == 0 || needed > most_rounds) return ended(TryEnd::futile, pairs, threshold);
  // A B, B A, A B: a drift of the machine favours neither.
  return {.step = rounds % 2 == 1 ? TryStep::run_kept : TryStep::run_changed};
}

}  // namespace stepladder
