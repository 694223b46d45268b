// Verdicts on named metrics, by the rules of speed-ups but for differences.
#include "storage/analysis/metric_comparison.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "storage/analysis/means/mean_test.h"
#include "storage/analysis/means/student_t.h"
#include "storage/analysis/verdict/step_grain.h"
#include "storage/by_enum.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// The error of a difference of means.
struct Error {
  double variance = missing;
  double freedom = 0;
  double of_pair = 0;  // the variance that one run of each side brings
};

Error error_of_pairs(std::span<const double> base, std::span<const double> run, std::size_t n) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < n; ++i) differences.push_back(run[i] - base[i]);
  const double std = figures_of(differences).std;
  return {std * std / static_cast<double>(n), static_cast<double>(n) - 1, std * std};
}

// Welch (1947).
Error error_of_sides(const SampleFigures& base, const SampleFigures& run) {
  const double b = base.std * base.std / static_cast<double>(base.n);
  const double r = run.std * run.std / static_cast<double>(run.n);
  const double sum = b + r;
  const double freedom = sum * sum / (b * b / static_cast<double>(base.n - 1) + r * r / static_cast<double>(run.n - 1));
  return {sum, freedom, base.std * base.std + run.std * run.std};
}

constexpr std::array lower_words = {"loss",     "bpb",     "bpc",  "ppl", "perplexity", "nll",  "xent",
                                    "err",      "error",   "wer",  "cer", "fid",        "mse",  "mae",
                                    "rmse",     "latency", "wall", "ms",  "time",       "secs", "seconds",
                                    "duration", "memory",  "mem",  "vram"};
constexpr std::array loss_words = {"loss", "ppl", "perplexity", "nll", "xent", "entropy"};
constexpr std::array validation_words = {"val", "valid", "validation", "eval", "test"};
constexpr std::array higher_words = {"acc",        "accuracy", "score", "reward", "mfu", "hfu",
                                     "throughput", "tokens",   "f1",    "auc",    "bleu"};
// Names that begin one of a cost, whatever it is of: "time_to_acc", "steps_to_score", "bits_per_token".
constexpr std::array costs = {"time_to_",  "steps_to_", "tokens_to_",   "seconds_to_",
                              "bits_per_", "nats_per_", "cross_entropy"};

constexpr std::array never_negative = {"bpb", "bpc",  "ppl", "perplexity", "wer", "cer", "mse",
                                       "mae", "rmse", "acc", "accuracy",   "f1",  "auc"};
constexpr std::array shares = {"acc", "accuracy", "f1", "auc"};

// Whether the name has the word between other signs: "val_bpb", "eval/loss", "max_mem_gb".
template <std::size_t n>
bool has_word(std::string_view name, const std::array<const char*, n>& words) {
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const auto letter = static_cast<unsigned char>(i < name.size() ? name[i] : '/');
    if (std::isalnum(letter) != 0) {
      word += static_cast<char>(std::tolower(letter));
      continue;
    }
    if (std::ranges::find(words, word) != words.end()) return true;
    word.clear();
  }
  return false;
}

MetricVerdict verdict_of(const MetricComparison& found, double floor, Direction direction) {
  if (std::max(std::abs(found.ci95.low), std::abs(found.ci95.high)) <= floor) return MetricVerdict::same;
  if (direction == Direction::unknown) return MetricVerdict::cannot_tell;
  const bool higher = found.difference >= floor && found.ci95.low > floor / 2;
  const bool lower = found.difference <= -floor && found.ci95.high < -floor / 2;
  if (!higher && !lower) return MetricVerdict::cannot_tell;
  return higher == (direction == Direction::higher) ? MetricVerdict::better : MetricVerdict::worse;
}

std::int64_t needed_runs(const MetricComparison& found, double of_pair, double floor, const Looks& looks) {
  const double off = std::abs(found.difference);
  const double distance = std::max(off >= floor ? off - floor / 2 : floor - off, floor / 2);
  if (!(distance > 0) || !(of_pair > 0)) return 0;
  return more_runs_for(distance, found.runs, [&](std::size_t n) {
    const auto runs = static_cast<double>(n);
    return student_t_quantile(1 - looks.error_at(n) / 2, 2 * runs - 2) * std::sqrt(of_pair / runs);
  });
}

}  // namespace

MetricComparison judge_metric(std::span<const double> base, std::span<const double> run, const MetricRules& rules) {
  MetricComparison found;
  found.runs = std::min(base.size(), run.size());
  const bool in_turns = !rules.looks.runs.empty();
  const SampleFigures of_base = figures_of(in_turns ? base.first(found.runs) : base);
  const SampleFigures of_run = figures_of(in_turns ? run.first(found.runs) : run);
  found.base = of_base.mean;
  found.value = of_run.mean;
  found.difference = found.value - found.base;
  if (found.runs < 2 || !std::isfinite(found.difference)) return found;
  const Error error = in_turns ? error_of_pairs(base, run, found.runs) : error_of_sides(of_base, of_run);
  const double floor = rules.noise_floor * std::abs(found.base);
  const double rounding =
      rounding_error(last_digit_of(base), of_base.std) + rounding_error(last_digit_of(run), of_run.std);
  const bool has_copies = !in_turns && !(of_base.std > 0 && of_run.std > 0);
  if (!(error.variance > 0) || has_copies) {
    if (found.difference != 0) return found;
    if (rounding > 0) found.ci95 = {-rounding, rounding};
    // Equal to the last digit, which may hide a difference.
    if (rounding <= floor) found.verdict = MetricVerdict::same;
    return found;
  }
  const double t = student_t_quantile(1 - rules.looks.error_at(found.runs) / 2, std::max(error.freedom, 1.0));
  const double half = t * std::sqrt(error.variance) + rounding;
  found.ci95 = {found.difference - half, found.difference + half};
  found.verdict = verdict_of(found, floor, rules.direction);
  if (found.verdict == MetricVerdict::cannot_tell)
    found.needed_runs = needed_runs(found, error.of_pair, floor, rules.looks);
  return found;
}

Direction better_direction(Quantity quantity) {
  const QuantityFacts* const field = facts_of(quantity);
  return field ? field->better : Direction::unknown;
}

Direction direction_of_name(std::string_view name) {
  if (const Direction known = better_direction(quantity_named(name)); known != Direction::unknown) return known;
  for (const std::string_view cost : costs)
    if (const std::size_t at = name.find(cost); at != name.npos && (at == 0 || std::isalnum(name[at - 1]) == 0))
      return Direction::lower;
  const bool lower = has_word(name, lower_words), higher = has_word(name, higher_words);
  return lower == higher ? Direction::unknown : lower ? Direction::lower : Direction::higher;
}

LossName loss_name(std::string_view name) {
  return {has_word(name, loss_words), has_word(name, validation_words)};
}

std::string impossible_value(std::string_view name, double before, double value) {
  const std::string figure = std::string(name) + " is " + metric_text(value);
  if (value < 0 && has_word(name, never_negative)) return figure + ", and it is never negative";
  if (!has_word(name, shares) || !(value > 1)) return {};
  if (value > 100) return figure + ", and no share is above 100 %";
  return before <= 1 ? figure + " after " + metric_text(before) + ", and no share is above 1" : "";
}

double delta_from(double base, double value) {
  return std::isfinite(base) && std::isfinite(value) ? value - base : missing;
}

double factor_from(double base, double value) {
  return std::isfinite(base) && std::isfinite(value) && base * value > 0 ? value / base : missing;
}

std::string_view to_string(MetricVerdict verdict) {
  return by_enum<MetricVerdict, std::string_view>("cannot-tell", "better", "worse", "same")[verdict];
}

MetricVerdict metric_verdict(double delta, Direction direction) {
  if (!std::isfinite(delta)) return MetricVerdict::cannot_tell;
  if (delta == 0) return MetricVerdict::same;
  if (direction == Direction::unknown) return MetricVerdict::cannot_tell;
  return (delta < 0) == (direction == Direction::lower) ? MetricVerdict::better : MetricVerdict::worse;
}

}  // namespace stepladder
