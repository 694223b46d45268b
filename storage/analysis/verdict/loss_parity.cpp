// Loss parity. One run a side is one run: neighbouring steps share their weights, so that even a gap which all of them
// show may be the seed's.
#include "storage/analysis/verdict/loss_parity.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "storage/analysis/means/mean_test.h"
#include "storage/analysis/means/student_t.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/analysis/verdict/step_grain.h"
#include "storage/by_enum.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::size_t fewest_to_diverge = 8;
constexpr std::size_t fewest_pairs = 3;      // whose spread is trusted alone
constexpr std::size_t first_losses = 5;      // that agree if weights and batches do
constexpr double same_start_nats = 0.002;    // how well
constexpr double share_of_same_start = 0.1;  // of the deviation between seeds
constexpr double far_deviations = 6;
constexpr std::size_t fewest_in_blocks = 4;
constexpr std::size_t fewest_batches_apart = 3;  // so many at the end are no spike

struct SharedSteps {
  std::vector<std::int64_t> step;
  std::vector<double> base_loss;
  std::vector<double> loss;
  std::int64_t first_nonfinite = 0;  // of the run, where the base's is finite or the run's stays so; 0: none
  bool base_is_lost = false;         // ends not finite, while the run's loss is

  bool empty() const { return step.empty(); }
};

// Steps where both have a loss and both are finite.
SharedSteps shared_steps(const Series& base, const Series& run, std::vector<double> Series::*losses) {
  SharedSteps shared;
  std::int64_t lost_with_base = 0;  // since then neither was finite
  for (std::size_t i = 0, j = 0; i < base.size() && j < run.size();) {
    if (base.step[i] != run.step[j]) {
      base.step[i] < run.step[j] ? ++i : ++j;
      continue;
    }
    const double base_loss = (base.*losses)[i++];
    const double loss = (run.*losses)[j];
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

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The last quarter.
std::vector<double> tail_of(const std::vector<double>& values) {
  return {values.end() - static_cast<std::ptrdiff_t>((values.size() + 3) / 4), values.end()};
}

// Around the median; further away is an outlier.
Interval usual_range(const std::vector<double>& values) {
  constexpr double any = std::numeric_limits<double>::infinity();
  if (values.size() < 4) return {-any, any};
  const double middle = median_of(values);
  std::vector<double> distances(values.size());
  std::transform(values.begin(), values.end(), distances.begin(), [&](double x) { return std::abs(x - middle); });
  const double reach = far_deviations * 1.4826 * median_of(std::move(distances));
  return {middle - reach, middle + reach};
}

void pull_in(std::vector<double>& values, const Interval& usual) {
  for (double& value : values) value = std::clamp(value, usual.low, usual.high);
}

// The last quarter, with outliers pulled in.
std::vector<double> calm_tail_of(const std::vector<double>& values) {
  std::vector<double> tail = tail_of(values);
  pull_in(tail, usual_range(tail));
  return tail;
}

// The step after which the run stayed more than `band` above the base; 0 unless it ends higher than it began while the
// base does better.
std::int64_t unlearned_since(const SharedSteps& shared, double band) {
  if (shared.step.size() < fewest_to_diverge) return 0;
  const bool rose = mean_of(calm_tail_of(shared.loss)) > shared.loss.front() + band;
  const bool base_fell = mean_of(calm_tail_of(shared.base_loss)) < shared.base_loss.front();
  if (!rose || !base_fell) return 0;
  std::size_t since = shared.step.size();
  while (since > 0 && shared.loss[since - 1] - shared.base_loss[since - 1] > band) --since;
  return since == shared.step.size() ? 0 : shared.step[since];
}

struct Pair {
  SharedSteps training;
  SharedSteps validation;
};

// Whether evaluations reach near the end of what both have: one before the first step shows nothing.
bool decides(const SharedSteps& validation, const SharedSteps& training) {
  if (validation.empty()) return false;
  return training.empty() || 4 * validation.step.back() >= 3 * training.step.back();
}

bool began_alike(const SharedSteps& training) {
  if (training.step.size() < first_losses) return false;
  for (std::size_t i = 0; i < first_losses; ++i)
    if (std::abs(training.loss[i] - training.base_loss[i]) > same_start_nats) return false;
  return true;
}

// The mean of the last quarter's gaps, and half of its 95 % interval by the scatter of blocks of neighbours; 0 for a
// few values, whose error is the spread between runs alone.
struct TailGap {
  double mean = missing;
  double half = 0;
};

// Outliers at the very end, all on one side.
std::vector<double> apart_at_end(const std::vector<double>& values, const Interval& usual) {
  std::size_t first = values.size();
  while (first > 0 && (values.back() > usual.high ? values[first - 1] > usual.high : values[first - 1] < usual.low))
    --first;
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.end()};
}

// Outliers don't count, unless the run ends with them: then they are where it ended. One batch may be a spike, but an
// evaluation has many: if only the last one is apart, the interval reaches as far as it.
TailGap tail_gap(const SharedSteps& shared, bool are_evaluations) {
  std::vector<double> gaps(shared.step.size());
  std::transform(shared.loss.begin(), shared.loss.end(), shared.base_loss.begin(), gaps.begin(), std::minus());
  std::vector<double> tail = tail_of(gaps);
  const Interval usual = usual_range(tail);
  const std::vector<double> apart = apart_at_end(tail, usual);
  if (apart.size() >= (are_evaluations ? 2 : fewest_batches_apart)) {
    const SampleFigures end = figures_of(apart);
    return {.mean = end.mean, .half = mean_interval(end).high - end.mean};
  }
  pull_in(tail, usual);
  TailGap found{.mean = mean_of(tail)};
  const auto block = static_cast<std::size_t>(std::ceil(block_length(tail)));
  const std::size_t blocks = tail.size() / block;
  if (tail.size() >= fewest_in_blocks && blocks >= 2) {
    double squares = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto first = tail.begin() + static_cast<std::ptrdiff_t>(i * tail.size() / blocks);
      const auto end = tail.begin() + static_cast<std::ptrdiff_t>((i + 1) * tail.size() / blocks);
      const double off = std::accumulate(first, end, 0.0) / static_cast<double>(end - first) - found.mean;
      squares += off * off;
    }
    const auto n = static_cast<double>(blocks);
    found.half = student_t_quantile(0.975, n - 1) * std::sqrt(squares / (n * (n - 1)));
  }
  if (are_evaluations && !apart.empty()) found.half = std::max(found.half, std::abs(apart.back() - found.mean));
  return found;
}

// How far the last printed digit may have moved the mean of the last quarter's gaps; 0 where that can't matter.
double rounding_of(const SharedSteps& shared, double tolerance) {
  double error = 0;
  for (const std::vector<double>* const losses : {&shared.base_loss, &shared.loss})
    error += rounding_error(last_digit_of(*losses), figures_of(tail_of(*losses)).std);
  return error > tolerance / 100 ? error : 0;
}

bool learn_the_same(const Run& base, const Run& run) {
  const RecipeFacts a = recipe_facts(base);
  const RecipeFacts b = recipe_facts(run);
  if (a.data && b.data && *a.data != *b.data) return false;
  if (a.vocab > 0 && b.vocab > 0 && a.vocab != b.vocab) return false;
  if (!a.tokenizer.empty() && !b.tokenizer.empty() && a.tokenizer != b.tokenizer) return false;
  if (a.seq > 0 && b.seq > 0 && a.seq != b.seq) return false;
  return a.overfits == b.overfits;
}

bool may_be_compared(const Run& base, const Series& base_series, const Run& run, const Series& series) {
  return learn_the_same(base, run) && have_equal_steps(base, base_series, run, series);
}

// Whether both end after as many tokens, whatever a step takes of them.
bool have_equal_tokens(const LossRun& base, const LossRun& run) {
  const auto tokens = [](const LossRun& of) {
    return of.series->empty() ? 0 : static_cast<double>(of.run->tokens_per_step * of.series->step.back());
  };
  const double a = tokens(base), b = tokens(run);
  if (a > 0 && b > 0) return std::abs(a / b - 1) <= 0.01;
  return have_equal_steps(*base.run, *base.series, *run.run, *run.series);
}

void take_largest_gap(LossParity& parity, const SharedSteps& shared) {
  for (std::size_t i = 0; i < shared.step.size(); ++i) {
    const double gap = std::abs(shared.loss[i] - shared.base_loss[i]);
    if (!is_missing(parity.max_gap) && gap <= parity.max_gap) continue;
    parity.max_gap = gap;
    parity.at_step = shared.step[i];
  }
}

LossVerdict verdict_of_gap(const Interval& ci95, double tolerance) {
  if (ci95.low >= -tolerance && ci95.high <= tolerance) return LossVerdict::same;
  if (ci95.high < -tolerance) return LossVerdict::better;
  return ci95.low > tolerance ? LossVerdict::worse : LossVerdict::inconclusive;
}

std::int64_t needed_pairs(const LossParity& parity, double variance) {
  const double distance = std::max(std::abs(parity.tolerance - std::abs(parity.tail_gap)), parity.tolerance / 2);
  if (!(variance > 0)) return 0;
  return more_runs_for(distance, parity.runs, [&](std::size_t n) {
    const auto pairs = static_cast<double>(n);
    return student_t_quantile(0.975, pairs - 1) * std::sqrt(variance / pairs);
  });
}

// Gap and interval over all pairs, by one of the two losses.
void judge_gap(LossParity& parity, const std::vector<Pair>& pairs, bool are_printed, const LossRules& rules) {
  std::vector<double> gaps;
  double by_steps = 0, rounding = 0;
  bool alike = true;
  for (const Pair& pair : pairs) {
    const SharedSteps& shared = parity.by_validation ? pair.validation : pair.training;
    if (shared.empty()) continue;
    const TailGap gap = tail_gap(shared, parity.by_validation);
    gaps.push_back(gap.mean);
    by_steps = std::max(by_steps, gap.half);
    if (are_printed) rounding = std::max(rounding, rounding_of(shared, rules.tolerance));
    alike = alike && began_alike(pair.training);
  }
  const auto n = static_cast<double>(gaps.size());
  parity.runs = gaps.size();
  parity.tail_gap = mean_of(gaps);
  double squares = 0;
  for (const double gap : gaps) squares += (gap - parity.tail_gap) * (gap - parity.tail_gap);
  double variance = 0;  // of one pair
  double between = 0;
  if (gaps.size() >= fewest_pairs && squares > 0) {
    variance = squares / (n - 1);
    between = student_t_quantile(0.975, n - 1) * std::sqrt(variance / n);
  } else if (rules.known.known()) {
    variance = 2 * rules.known.variance() * (alike ? share_of_same_start * share_of_same_start : 1);
    between = student_t_quantile(0.975, rules.known.freedom) * std::sqrt(variance / n);
  }
  const double half = std::hypot(by_steps / std::sqrt(n), between) + rounding;
  parity.ci95 = {parity.tail_gap - half, parity.tail_gap + half};
  parity.verdict = verdict_of_gap(parity.ci95, rules.tolerance);
  if (parity.verdict == LossVerdict::inconclusive) parity.needed_runs = needed_pairs(parity, variance);
}

// The mean of the last quarter's finite values; missing if there are none.
double mean_of_tail(const std::vector<double>& values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  return finite.empty() ? missing : mean_of(tail_of(finite));
}

// Whether a run prints one loss under both names: each validation loss is the training loss of its step.
bool validates_by_training(const Series& series) {
  constexpr std::size_t fewest = 3;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (is_missing(series.val_loss[i]) || is_missing(series.loss[i])) continue;
    if (series.val_loss[i] != series.loss[i]) return false;
    ++equal;
  }
  return equal >= fewest;
}

// The share of a run's steps after which it has a finite training loss; 0: it has none.
double end_of_losses(const Series& series) {
  for (std::size_t i = series.size(); i > 0; --i)
    if (std::isfinite(series.loss[i - 1])) return static_cast<double>(i) / static_cast<double>(series.size());
  return 0;
}

bool is_constant(const Series& series) {
  constexpr std::ptrdiff_t fewest = 8;
  std::vector<double> finite;
  std::ranges::copy_if(series.loss, std::back_inserter(finite), [](double loss) { return std::isfinite(loss); });
  return std::ssize(finite) >= fewest && std::ranges::count(finite, finite.front()) == std::ssize(finite);
}

constexpr std::int64_t last_untrained = 2;

// Whether the run's loss is far below the other's where both begin, as an untrained model's can't be. Later than at the
// first steps: while the other has hardly learnt, and by most of what it will, as no better optimiser can be.
bool begins_lower(const Series& base, const SharedSteps& shared, std::vector<double> Series::*losses) {
  constexpr double far_nats = 1;
  const std::vector<double>& all = base.*losses;
  const auto first = std::ranges::find_if(all, [](double loss) { return std::isfinite(loss); });
  if (shared.empty() || base.step[static_cast<std::size_t>(first - all.begin())] > last_untrained) return false;
  const double lower = shared.base_loss.front() - shared.loss.front();
  if (shared.step.front() <= last_untrained) return lower > far_nats;
  const double fall = *first - mean_of_tail(all);
  return *first - shared.base_loss.front() < fall / 10 && lower > std::max(far_nats, fall / 2);
}

// Whether the training loss ends far above the base's, having risen: dropout, or another loss beside it, is a gap
// without a rise.
bool leaves_at_end(const SharedSteps& training, double tolerance) {
  const double far = 5 * tolerance;
  if (training.step.size() < fewest_to_diverge) return false;
  SharedSteps own = training;
  const auto end = own.loss.end() - static_cast<std::ptrdiff_t>(tail_of(own.loss).size());
  std::ranges::fill(own.base_loss, mean_of(tail_of({own.loss.begin(), end})));
  const TailGap gap = tail_gap(training, false);
  return gap.mean - gap.half > far && tail_gap(own, false).mean > far;
}

// Whether the losses of both, in every quarter of the steps, have this ratio.
bool have_ratio(const SharedSteps& shared, double ratio) {
  constexpr double most_off = 0.02;
  const std::size_t n = shared.step.size();
  if (n < fewest_to_diverge) return false;
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    double sum = 0, base_sum = 0;
    for (std::size_t i = quarter * n / 4; i < (quarter + 1) * n / 4; ++i) {
      sum += shared.loss[i];
      base_sum += shared.base_loss[i];
    }
    if (!(std::abs(sum / base_sum / ratio - 1) < most_off)) return false;
  }
  return true;
}

// The ratio of the training losses where both models are untrained; 1: it isn't known.
double first_ratio(const SharedSteps& training) {
  return training.empty() || training.step.front() > last_untrained
             ? 1
             : training.loss.front() / training.base_loss.front();
}

// The share of the steps whose training loss is above the one before.
double share_of_rises(const Series& series) {
  std::vector<double> finite;
  std::ranges::copy_if(series.loss, std::back_inserter(finite), [](double loss) { return std::isfinite(loss); });
  double rises = 0;
  for (std::size_t i = 1; i < finite.size(); ++i) rises += finite[i] > finite[i - 1] ? 1 : 0;
  return rises / static_cast<double>(finite.size());
}

std::int64_t last_step_of(const LossRun& of) {
  return std::max(of.run->planned_steps, of.series->empty() ? 0 : of.series->step.back());
}

std::string other_values(const std::string& base, const std::string& run, const char* of) {
  if (base.empty() || run.empty() || base == run) return {};
  return std::string(of) + ": " + base + " and " + run;
}

// Why losses that others print may be another measure than the baseline's; empty: nothing shows it. `shared`: of the
// loss that is compared.
std::string doubt_of_measure(const Series& base, const Series& run, const SharedSteps& training,
                             const SharedSteps& shared, bool by_validation) {
  if (!by_validation && is_constant(run)) return "its training loss never changes";
  if (begins_lower(base, shared, by_validation ? &Series::val_loss : &Series::loss))
    return "its first loss is far lower, so it may be of another unit, or it began with other weights";
  if (have_ratio(shared, std::numbers::ln2))
    return "its losses are ln 2 times the baseline's all along, so they may be in nats and those in bits";
  if (const double ratio = first_ratio(training); ratio < 0.98 && have_ratio(shared, ratio))
    return "its losses are " + decimals(ratio, 2) +
           " times the baseline's from the first step on, so they may be another measure";
  if (!by_validation && share_of_rises(run) == 0 && share_of_rises(base) > 0.25)
    return "its training loss never rises, so it may be the lowest or a mean of all so far";
  return {};
}

// Why an equal or a lower loss of the run shows nothing; empty: it does.
std::string doubt_of(const LossRun& base, const LossRun& run, bool by_validation) {
  constexpr double most_apart = 0.8;  // of validation and training, each over the base's: units are 0.69 and less
  const Series &a = *base.series, &b = *run.series;
  const RecipeFacts facts = recipe_facts(*base.run), others = recipe_facts(*run.run);
  const double base_loss = mean_of_tail(a.loss), loss = mean_of_tail(b.loss);
  const double base_val = mean_of_tail(a.val_loss), val = mean_of_tail(b.val_loss);
  if (!is_missing(base_val) && is_missing(val)) return "only the baseline was validated";
  if ((loss <= 0 || val <= 0) && !(base_loss <= 0 || base_val <= 0)) return "a loss of 0 or less is no cross-entropy";
  constexpr double early = 0.75;
  if (end_of_losses(a) >= early && end_of_losses(b) < early) return "its training loss ends early";
  const bool is_printed = run.run->source == "import" || run.run->is_claimed;
  SharedSteps shared;
  if (is_printed) {
    const SharedSteps training = shared_steps(a, b, &Series::loss);
    shared = by_validation ? shared_steps(a, b, &Series::val_loss) : training;
    if (std::string doubt = doubt_of_measure(a, b, training, shared, by_validation); !doubt.empty()) return doubt;
  }
  if (std::string other = other_values(facts.schedule, others.schedule, "the schedules differ"); !other.empty())
    return other;
  if (is_printed && (facts.schedule.empty() || others.schedule.empty()) &&
      run.run->tokens_per_step == base.run->tokens_per_step &&
      static_cast<double>(last_step_of(run)) < 0.9 * static_cast<double>(last_step_of(base)))
    return "it ends before the baseline, so its schedule may be a shorter one";
  const bool is_far_lower = is_printed && mean_of_tail(shared.base_loss) > 1 &&
                            mean_of_tail(shared.loss) < mean_of_tail(shared.base_loss) / 2;
  const char* const leak = "its loss is less than half of the baseline's, so the model may see what it is to predict";
  if (!by_validation) return is_far_lower ? leak : "";
  if (std::string other = other_values(facts.evaluation, others.evaluation, "the validations differ"); !other.empty())
    return other;
  if (validates_by_training(b) && !validates_by_training(a)) return "its validation losses are its training losses";
  if (base_loss > 0 && base_val > 0 && val / base_val < most_apart * std::min(loss / base_loss, 1.0))
    return "its validation loss is far lower and its training loss is not, so it may be of another unit or other data";
  return is_far_lower ? leak : "";
}

}  // namespace

std::string metric_doubt(std::string_view name, const LossRun& base, const LossRun& run) {
  const LossName loss = loss_name(name);
  if (!loss.is_loss) return {};
  if (!learn_the_same(*base.run, *run.run))
    return "the losses can't be compared: the sides train on other data, vocabularies or context lengths";
  if (!have_equal_tokens(base, run)) return "the losses can't be compared: the sides train on other numbers of tokens";
  return doubt_of(base, run, loss.is_validation);
}

bool have_equal_steps(const Run& base, const Series& base_series, const Run& run, const Series& series) {
  if (base.tokens_per_step > 0 || run.tokens_per_step > 0) return base.tokens_per_step == run.tokens_per_step;
  const RecipeFacts a = recipe_facts(base);
  const RecipeFacts b = recipe_facts(run);
  const auto differ = [](std::int64_t x, std::int64_t y) { return x > 0 && y > 0 && x != y; };
  if (differ(a.batch, b.batch) || differ(a.seq, b.seq) || differ(a.grad_accum, b.grad_accum)) return false;
  const bool same_steps = !base_series.empty() && !series.empty() && base_series.step.back() == series.step.back();
  const bool same_shape = a.layers > 0 && a.layers == b.layers && a.d_model == b.d_model;
  return same_steps || same_shape;
}

std::string_view to_string(LossVerdict verdict) {
  return by_enum<LossVerdict, std::string_view>("same", "better", "worse", "inconclusive", "diverged",
                                                "not-comparable")[verdict];
}

RunSpread loss_spread(std::span<const LossRun> repeats) {
  std::vector<double> gaps{0};
  for (std::size_t i = 1; i < repeats.size(); ++i) {
    const SharedSteps shared = shared_steps(*repeats.front().series, *repeats[i].series, &Series::loss);
    if (shared.empty()) continue;
    if (began_alike(shared)) return {};
    gaps.push_back(tail_gap(shared, false).mean);
  }
  const double mean = mean_of(gaps);
  RunSpread spread{.freedom = static_cast<double>(gaps.size() - 1), .from = SpreadFrom::project};
  for (const double gap : gaps) spread.squares += (gap - mean) * (gap - mean);
  return spread.squares > 0 ? spread : RunSpread{};
}

LossParity loss_parity(std::span<const LossRun> base, std::span<const LossRun> runs, const LossRules& rules) {
  LossParity parity{.tolerance = rules.tolerance};
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Series& against = *(i < base.size() ? base[i] : base.front()).series;
    pairs.push_back({shared_steps(against, *runs[i].series, &Series::loss),
                     shared_steps(against, *runs[i].series, &Series::val_loss)});
  }
  const Pair& first = pairs.front();
  parity.by_validation = decides(first.validation, first.training);
  take_largest_gap(parity, parity.by_validation || first.training.empty() ? first.validation : first.training);
  const bool comparable =
      may_be_compared(*base.front().run, *base.front().series, *runs.front().run, *runs.front().series);
  for (const Pair& pair : pairs) {
    const SharedSteps& shared = pair.training.empty() ? pair.validation : pair.training;
    const std::int64_t unlearned = unlearned_since(shared, rules.tolerance);
    if (shared.first_nonfinite > 0) {
      parity.max_gap = std::numeric_limits<double>::infinity();
      parity.at_step = shared.first_nonfinite;
    } else if (unlearned > 0 && comparable) {
      parity.at_step = unlearned;
    } else {
      continue;
    }
    if (comparable) parity.verdict = LossVerdict::diverged;
    return parity;
  }
  if (is_missing(parity.max_gap)) return parity;
  pairs.resize(std::min(pairs.size(), base.size()));  // the others are of one base
  const bool are_printed = base.front().run->source == "import" || runs.front().run->source == "import";
  judge_gap(parity, pairs, are_printed, rules);
  if (parity.verdict != LossVerdict::worse) {
    parity.doubt = doubt_of(base.front(), runs.front(), parity.by_validation);
    const auto leaves = [&](const Pair& pair) { return leaves_at_end(pair.training, rules.tolerance); };
    if (parity.doubt.empty() && parity.by_validation && std::ranges::any_of(pairs, leaves))
      parity.doubt = "its training loss rises at the end, far above the baseline's, and its validation loss doesn't";
    if (!parity.doubt.empty()) {
      parity.verdict = LossVerdict::inconclusive;
      parity.needed_runs = 0;
    }
  }
  if (!comparable || first.training.base_is_lost || first.validation.base_is_lost) {
    parity.verdict = LossVerdict::not_comparable;
    parity.ci95 = {};
    parity.needed_runs = 0;
  }
  return parity;
}

}  // namespace stepladder
