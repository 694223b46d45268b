// Splits a metric's name into words and matches them against lists. A name must consist only of known words for times,
// rates and learning rates, since a wrong match silently turns a custom metric into a step's field. second_rate ranks
// candidates: lower is better.
#include "storage/importers/trackers/metric_names.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace stepladder {
namespace {

using Words = std::vector<std::string>;
using List = std::initializer_list<std::string_view>;

constexpr std::size_t longest_name = 200;

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// "Train Loss", "train/loss", "trainLoss" -> train, loss
Words words_of(std::string_view name) {
  Words words;
  bool inside = false;
  char before = ' ';
  for (const char c : name) {
    const bool letter = is_upper(c) || is_lower_or_digit(c);
    if (!letter) {
      inside = false;
    } else {
      if (!inside || (is_upper(c) && is_lower_or_digit(before))) words.emplace_back();
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      inside = true;
    }
    before = c;
  }
  return words;
}

bool is_in(std::string_view word, List list) {
  return std::ranges::find(list, word) != list.end();
}

bool any(const Words& words, List list) {
  return std::ranges::any_of(words, [&](const std::string& word) { return is_in(word, list); });
}

bool only(const Words& words, List list) {
  return std::ranges::all_of(words, [&](const std::string& word) { return is_in(word, list); });
}

// Removes the word that names a unit of time and returns how many milliseconds that is; 0 if no word does.
double take_time_unit(Words& words) {
  for (std::size_t i = words.size(); i-- > 0;) {
    double ms = 0;
    if (is_in(words[i], {"ms", "msec", "millis", "milliseconds", "millisecond"})) ms = 1;
    if (is_in(words[i], {"s", "sec", "secs", "second", "seconds"})) ms = 1000;
    if (is_in(words[i], {"us", "usec", "microseconds"})) ms = 1e-3;
    if (ms == 0) continue;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    return ms;
  }
  return 0;
}

bool is_loss(const Words& words) {
  const bool said = any(words, {"loss"}) || (any(words, {"cross"}) && any(words, {"entropy"})) || any(words, {"xent"});
  const bool is_policys = any(words, {"entropy"}) && !any(words, {"cross"});
  return said && !is_policys &&
         only(words, {"loss",       "cross",    "entropy", "xent",  "train", "training", "val",       "valid",
                      "validation", "eval",     "test",    "dev",   "total", "avg",      "average",   "mean",
                      "global",     "metrics",  "lm",      "ce",    "step",  "epoch",    "iter",      "iteration",
                      "batch",      "language", "losses",  "model", "final", "running",  "evaluation"});
}

MetricMeaning loss_meaning(const Words& words) {
  MetricMeaning meaning{.role = MetricRole::loss, .second_rate = static_cast<int>(words.size())};
  if (any(words, {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}))
    meaning.role = MetricRole::val_loss;
  if (any(words, {"epoch", "final", "running"})) meaning.second_rate += 100;
  if (any(words, {"avg", "average", "mean"})) meaning.second_rate += 10;
  if (any(words, {"test"})) meaning.second_rate += 100;
  return meaning;
}

bool is_learning_rate(Words words) {
  // lr-AdamW/pg1, lr/group0, optimizer/lr_0
  std::erase_if(words, [](const std::string& word) {
    return word.find_first_not_of("0123456789") == std::string::npos || word.starts_with("pg") ||
           word.starts_with("group");
  });
  const bool said = any(words, {"lr"}) || (any(words, {"learning"}) && any(words, {"rate"}));
  return said && only(words, {"lr", "learning", "rate", "train", "training", "optim", "optimizer", "adam", "adamw",
                              "decoupled", "scheduler", "schedule", "current", "sgd", "muon", "step", "param", "w"});
}

bool is_gradient_norm(const Words& words) {
  if (words == Words{"norm"} || any(words, {"gnorm", "gradnorm"})) return words.size() <= 2;
  return any(words, {"norm"}) && any(words, {"grad", "grads", "gradient", "gradients"}) &&
         only(words, {"norm", "grad", "grads", "gradient", "gradients", "train", "training", "global", "total", "l2",
                      "optim", "optimizer", "metrics", "2"});
}

bool names_a_step(const Words& words) {
  return any(words, {"step", "iter", "iteration", "it", "batch", "update"});
}

bool is_step_time(const Words& words, bool has_unit) {
  if (words == Words{"time", "metrics", "end", "to", "end"}) return true;
  if (!only(words, {"dt", "step", "iter", "iteration", "it", "batch", "update", "time", "per", "train", "training",
                    "duration", "latency", "timing", "perf", "avg", "mean", "delta"}))
    return false;
  if (any(words, {"dt"})) return true;
  if (!names_a_step(words)) return false;
  if (any(words, {"time", "duration", "latency"})) return true;
  return has_unit && any(words, {"per"});
}

// "step_ms", "iter_us", "batch_seconds": a unit that no rate is per, unlike "step/s" and "iter/sec".
bool is_time_of_step(const Words& words, const Words& rest) {
  const bool has_time =
      any(words, {"ms", "msec", "millis", "milliseconds", "us", "usec", "microseconds", "secs", "seconds"});
  return has_time && names_a_step(rest) && !any(words, {"per"}) &&
         only(rest, {"step", "iter", "iteration", "batch", "update", "train", "training", "perf", "avg", "mean"});
}

// The thing that is counted per second in "tokens_per_sec", "throughput(tps)", "samples/s", "it/s".
MetricRole rate_role(const Words& words) {
  if (!only(words, {"train", "training", "throughput", "tokens",   "token",      "tok",       "toks",
                    "tps",   "per",      "perf",       "speed",    "metrics",    "global",    "avg",
                    "mean",  "samples",  "sample",     "examples", "example",    "sequences", "seqs",
                    "steps", "it",       "its",        "iters",    "iterations", "batches",   "updates"}))
    return MetricRole::none;
  if (any(words, {"tokens", "token", "tok", "toks", "tps"})) return MetricRole::tokens_per_s;
  if (any(words, {"samples", "sample", "examples", "example", "sequences", "seqs"})) return MetricRole::samples_per_s;
  if (any(words, {"steps", "it", "its", "iters", "iterations", "batches", "updates"})) return MetricRole::steps_per_s;
  return MetricRole::none;
}

bool is_token_count(const Words& words) {
  return any(words, {"tokens"}) && only(words, {"tokens", "train", "training", "num", "n", "input", "total", "seen",
                                                "processed", "consumed", "cumulative", "so", "far"});
}

// A unit of time in a name is the divisor of a rate ("tok/s", "steps_per_second") or the time's own unit ("s/it").
MetricMeaning timed_meaning(const Words& words) {
  Words rest = words;
  const double unit_ms = take_time_unit(rest);
  const int rank = static_cast<int>(words.size());
  if (any(words, {"tps"})) {
    if (rate_role(rest) == MetricRole::tokens_per_s)
      return {.role = MetricRole::tokens_per_s, .scale = unit_ms == 0 ? 1 : 1000 / unit_ms, .second_rate = rank};
    return {};
  }
  const bool unit_leads = !words.empty() && unit_ms != 0 && words.front() != rest.front();
  if (is_step_time(rest, unit_ms != 0) && (unit_leads || !any(rest, {"it"}) || any(rest, {"time"})))
    return {.role = MetricRole::step_time, .scale = unit_ms, .second_rate = rank};
  if ((unit_leads && rest.size() <= 2 && names_a_step(rest)) || is_time_of_step(words, rest))  // s/it, ms/step
    return {.role = MetricRole::step_time, .scale = unit_ms, .second_rate = rank};
  if (unit_ms != 0 && !unit_leads)
    if (const MetricRole role = rate_role(rest); role != MetricRole::none)
      return {.role = role, .scale = 1000 / unit_ms, .second_rate = rank};
  return {};
}

}  // namespace

std::string_view to_string(MetricRole role) {
  return by_enum<MetricRole>("nothing known", "loss", "validation loss", "learning rate", "gradient norm", "step time",
                             "steps per second", "tokens per second", "samples per second", "tokens per step",
                             "tokens seen")[role];
}

int rank_as_step(std::string_view name) {
  if (name.size() > longest_name) return 0;
  Words words = words_of(name);
  const auto evaluations = std::erase_if(words, [](const std::string& word) {
    return is_in(word, {"val", "valid", "validation", "eval", "test"});
  });
  if (!any(words, {"step", "steps", "iter", "iters", "iteration", "iterations", "update", "updates", "it"}) ||
      !only(words, {"step",      "steps", "iter",     "iters",    "iteration", "iterations", "update", "updates",
                    "it",        "train", "trainer",  "training", "global",    "num",        "n",      "current",
                    "optimizer", "opt",   "gradient", "idx",      "number",    "log"}))
    return 0;
  if (evaluations > 0) return -1;
  if (any(words, {"global", "optimizer"})) return 3;
  return any(words, {"n", "num", "log", "gradient", "steps", "iters", "iterations", "updates"}) ? 1 : 2;
}

MetricMeaning meaning_of_metric(std::string_view name) {
  if (name.empty() || name.size() > longest_name) return {};
  const Words words = words_of(name);
  if (words.empty()) return {};
  const int rank = static_cast<int>(words.size());
  if (is_loss(words)) return loss_meaning(words);
  if (is_learning_rate(words)) return {.role = MetricRole::lr, .second_rate = rank};
  if (is_gradient_norm(words)) return {.role = MetricRole::grad_norm, .second_rate = rank};
  if (words == Words{"tokens", "per", "step"} || words == Words{"tokens", "per", "iter"})
    return {.role = MetricRole::tokens_per_step, .second_rate = rank};
  if (const MetricMeaning timed = timed_meaning(words); timed.role != MetricRole::none) return timed;
  if (is_token_count(words) && words.size() > 1) return {.role = MetricRole::tokens_seen, .second_rate = rank};
  return {};
}

namespace {

constexpr int last_resort = 100;  // MetricMeaning::second_rate of epochs' means and test sets

}  // namespace

double as_logged(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

double* field_of(StepRecord& record, MetricRole role) {
  switch (role) {
    case MetricRole::loss:
      return &record.loss;
    case MetricRole::val_loss:
      return &record.val_loss;
    case MetricRole::lr:
      return &record.lr;
    case MetricRole::grad_norm:
      return &record.grad_norm;
    default:
      return nullptr;
  }
}

double middle_of(std::vector<double> values) {
  if (values.empty()) return missing;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double unit_near(double typical, double wall_ms) {
  if (!(typical > 0) || !(wall_ms > 0)) return missing;
  const double ratio = typical / wall_ms;
  if (ratio > 0.1 && ratio < 2) return 1;
  return ratio > 0.1 / 1000 && ratio < 2.0 / 1000 ? 1000 : missing;
}

bool usable_count(double tokens) {
  return tokens >= 0.5 && tokens < 1e15;
}

bool is_better(const RoleCandidate& a, const RoleCandidate& b) {
  const bool a_last = a.second_rate >= last_resort;
  const bool b_last = b.second_rate >= last_resort;
  if (a_last != b_last) return b_last;
  return a.values != b.values ? a.values > b.values : a.second_rate < b.second_rate;
}

Metric logged_metric(const std::string& name, MetricRole role, bool is_chosen) {
  Metric metric{.name = name};
  if (role != MetricRole::loss && role != MetricRole::val_loss) return metric;
  metric.direction = Direction::lower;
  if (is_chosen) metric.field = role == MetricRole::loss ? "loss" : "val_loss";
  return metric;
}

}  // namespace stepladder
