// Which figures count, by their names, and what they are for one step: medians of the first few thousand values, so
// that a slow first step moves none of them. A figure of another name, or in a unit that isn't known, is left alone.
#include "storage/importers/logs/other_figures.h"

#include <cmath>
#include <numeric>

#include "storage/analysis/statistics.h"
#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/text.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr std::size_t most_values = 4096;
constexpr std::size_t fewest_values = 8;

void keep(std::vector<double>& values, double value) {
  if (values.size() < most_values && value > 0 && std::isfinite(value)) values.push_back(value);
}

// "train/data_time" and "data time": "data time".
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(name.find_last_of('/') + 1)) plain += c == '_' || c == '-' ? ' ' : lower(c);
  return plain;
}

// The seconds behind the words, where the line says so.
double seconds_behind(std::string_view line, std::string_view words) {
  const auto alike = [](char a, char b) { return lower(a) == lower(b); };
  const auto found = std::search(line.begin(), line.end(), words.begin(), words.end(), alike);
  if (found == line.end()) return missing;
  std::string_view rest = trimmed(line.substr(static_cast<std::size_t>(found - line.begin()) + words.size()), " :='\"");
  const std::size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const double value = parse_number<double>(rest.substr(0, end)).value_or(missing);
  const std::string_view unit = trimmed(rest.substr(end));
  const bool is_seconds =
      unit == "s" || unit.starts_with("s ") || unit.starts_with("sec") || words.ends_with("runtime");
  return is_seconds && value > 0 ? value : missing;
}

}  // namespace

void OtherFigures::read_step(std::string_view line, std::int64_t step) {
  if (lines_++ >= most_values) return;
  PairScanner scanner(line);
  for (Pair pair; scanner.next(pair);)
    if (!is_missing(pair.value)) add(pair.key, pair.unit.empty() ? pair.hint : pair.unit, {step, pair.value, missing});
}

void OtherFigures::add(std::string_view name, std::string_view unit, const MetricPoint& point) {
  const std::string plain = plain_name(name);
  if (plain == "mfu") keep(rates_[per_step::mfu], point.value);
  if (plain == "tflops" || unit == "TFLOP/s" || unit == "TFLOPS") keep(rates_[per_step::tflops], point.value);
  if (plain == "consumed samples" || plain == "consumed tokens") {
    Counter& counter = counters_[plain == "consumed samples" ? per_step::samples : per_step::tokens];
    if (counter.points++ == 0) counter.first = point;
    counter.last = point;
  }
  const TimeUnit time = time_unit(unit);
  if (time != TimeUnit::unknown && one_of(plain, {"data", "data time", "forward", "forward time", "fwd", "backward",
                                                  "backward time", "bwd", "optimizer", "optimizer time", "optim"}))
    keep(parts_[plain], point.value * milliseconds_in(time));
}

void OtherFigures::add_step(const PrintedStep& step, const InferredUnits& units, RateLabel rate) {
  if (is_missing(step.time) || units.time_is_clock) return;
  keep(dt_ms_, step.time * units.ms_per_time / units.per_step);
  if (dt_ms_.size() == 1) first_step_ = step.step;
  last_step_ = step.step;
  if (rate == RateLabel::samples) keep(rates_[per_step::samples_rate], step.throughput);
  keep(rates_[per_step::steps_rate], rate == RateLabel::iterations ? step.throughput : step.iterations);
}

void OtherFigures::read_total(std::string_view line) {
  for (const std::string_view words : {"train_runtime", "total training time", "total time", "training completed in",
                                       "training finished in", "training took"})
    if (const double seconds = seconds_behind(line, words); !is_missing(seconds)) total_s_ = seconds;
}

std::map<std::string, double> OtherFigures::per_step(const LogFacts& facts) const {
  std::map<std::string, double> found;
  if (facts.tokens_printed > 0 && facts.batch > 0 && facts.grad_accum > 0)
    found[per_step::configured] = static_cast<double>(facts.batch * facts.grad_accum);
  for (const auto& [name, counter] : counters_)
    if (counter.points >= static_cast<std::int64_t>(fewest_values) && counter.last.step > counter.first.step)
      found[name] =
          (counter.last.value - counter.first.value) / static_cast<double>(counter.last.step - counter.first.step);
  if (dt_ms_.size() < fewest_values) return found;
  const double dt_ms = median_of(dt_ms_);
  for (const auto& [name, values] : rates_)
    if (values.size() >= fewest_values) found[name] = median_of(values) * dt_ms / 1000;
  for (const auto& [name, values] : parts_)
    if (values.size() >= fewest_values) found[per_step::parts_ms] += median_of(values);
  // What no step's time has: evaluations, checkpoints. Compiling is in the first step, if that is timed.
  const double mean_ms = std::accumulate(dt_ms_.begin(), dt_ms_.end(), 0.0) / static_cast<double>(dt_ms_.size());
  if (total_s_ > 0 && first_step_ <= 2)
    found[per_step::untimed_ms] = std::max(0.0, 1000 * total_s_ / static_cast<double>(last_step_ + 1) - mean_ms);
  return found;
}

}  // namespace stepladder
