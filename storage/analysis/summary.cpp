// SummaryBuilder computes a run's figures in one pass: exactly up to exact_steps, by histogram and samples beyond. A
// new figure needs both paths (finish_exact, finish_bounded) and a column in the cache
// (storage/database/derived/derived.cpp).
#include "storage/analysis/summary.h"

#include <algorithm>
#include <cmath>

#include "storage/analysis/change_point.h"
#include "storage/analysis/training_progress.h"
#include "storage/analysis/wall_clock.h"
#include "storage/contention.h"

namespace stepladder {
namespace {

double smaller(double a, double b) {
  return is_missing(a) ? b : std::min(a, b);
}

bool is_time(double dt_ms) {
  return dt_ms > 0 && std::isfinite(dt_ms);
}

constexpr std::size_t most_kept_for_drift = 65'536;

}  // namespace

std::int64_t warmup_steps(std::int64_t steps, std::int64_t asked) {
  if (asked >= 0) return std::clamp<std::int64_t>(asked, 0, std::max<std::int64_t>(steps - 1, 0));
  return steps < 4 ? 0 : std::clamp<std::int64_t>(steps / 10, 1, 10);
}

std::vector<double> steady_dt_ms(const Series& series, const Summary& summary) {
  std::vector<double> steady;
  for (auto i = static_cast<std::size_t>(summary.warmup_steps); i < series.size(); ++i)
    if (is_time(series.dt_ms[i])) steady.push_back(series.dt_ms[i]);
  return steady;
}

ReadFrom read_from(const Run& run) {
  return run.printed.times_from_clock ? ReadFrom::clock : ReadFrom::timer;
}

SummaryBuilder::SummaryBuilder(std::int64_t asked_warmup, std::int64_t tokens_per_step, std::size_t exact_steps,
                               ReadFrom from)
    : asked_warmup_(asked_warmup), tokens_per_step_(tokens_per_step), exact_steps_(exact_steps), from_(from) {}

void SummaryBuilder::add(const StepRecord& record, const Contention& contention) {
  const std::int64_t place = summary_.steps++;
  Others others;
  if (is_known(contention)) {
    others = {.cores = static_cast<float>(contention.other_cores),
              .program_cores = static_cast<float>(contention.program_cores),
              .gpu_load = static_cast<float>(contention.other_gpu_load),
              .known = true,
              .disturbed = is_disturbed(contention)};
    summary_.disturbance.cores = contention.cores;
    summary_.disturbance.needed_cores = contention.needed_cores;
  }
  if (place == 0) summary_.first_step = record.step;
  summary_.last_step = record.step;
  if (place == 0 || record.tokens != tokens_) tokens_changed_ = place;
  tokens_ = record.tokens;

  if (!is_time(record.dt_ms)) ++summary_.untimed_steps;
  if (place == 0) begins_with_evaluation_ = is_evaluation(record);
  // A timer that shows 0 between others stood still; a clock that is read per step may be coarse.
  const bool stood_still = record.dt_ms == 0 && place > 0 && from_ == ReadFrom::timer;
  if ((record.dt_ms < 0 || stood_still) && summary_.backwards_step == 0) summary_.backwards_step = record.step;
  if (!is_missing(record.loss)) {
    if (!std::isfinite(record.loss) && summary_.nonfinite_steps++ == 0) summary_.first_nonfinite_step = record.step;
    if (is_missing(summary_.loss_first)) summary_.loss_first = record.loss;
    summary_.loss_last = record.loss;
    if (std::isfinite(record.loss)) summary_.loss_min = smaller(summary_.loss_min, record.loss);
  }
  if (!is_missing(record.val_loss)) {
    summary_.val_loss_last = record.val_loss;
    if (std::isfinite(record.val_loss)) summary_.val_loss_min = smaller(summary_.val_loss_min, record.val_loss);
  }

  if (static_cast<std::size_t>(place) == exact_steps_) leave_exactness();
  if (static_cast<std::size_t>(place) < exact_steps_) {
    head_.step.push_back(record.step);
    head_.dt_ms.push_back(record.dt_ms);
    head_.val_loss.push_back(record.val_loss);
    if (others.known) {
      others_.resize(static_cast<std::size_t>(place));
      others_.push_back(others);
    }
  } else if (place >= summary_.warmup_steps) {
    take_steady(record.dt_ms, others);
  }
  last_dt_ms_ = record.dt_ms;
}

void SummaryBuilder::leave_exactness() {
  const auto steps = static_cast<std::int64_t>(head_.size());
  summary_.warmup_steps = asked_warmup_;
  if (asked_warmup_ < 0) {
    summary_.warmup_steps = warmup_steps(steps, asked_warmup_);
    const auto end = warmup_end(head_.dt_ms, static_cast<std::size_t>(summary_.warmup_steps));
    summary_.warmup_steps = static_cast<std::int64_t>(end);
  }
  const auto first_steady = static_cast<std::size_t>(std::min(summary_.warmup_steps, steps));
  if (!head_.empty()) summary_.spike_period = static_cast<std::int64_t>(find_spikes(head_, first_steady).period);
  for (std::size_t i = first_steady; i < head_.size(); ++i) take_steady(head_.dt_ms[i], others_at(i));
  head_ = {};
  others_ = {};
}

// The sums in `disturbance` become means in `finish`.
void SummaryBuilder::count_disturbed(double dt_ms, const Others& others) {
  if (!others.known || !is_time(dt_ms)) return;
  ++summary_.watched_steps;
  if (!others.disturbed) return;
  ++summary_.disturbed_steps;
  const auto add = [](double& sum, float value) {
    if (!std::isnan(value)) sum = (is_missing(sum) ? 0 : sum) + value;
  };
  add(summary_.disturbance.other_cores, others.cores);
  add(summary_.disturbance.program_cores, others.program_cores);
  add(summary_.disturbance.other_gpu_load, others.gpu_load);
}

void SummaryBuilder::take_steady(double dt_ms, const Others& others) {
  if (!is_time(dt_ms)) return;
  count_disturbed(dt_ms, others);
  steady_.add(dt_ms);
  if (until_next_-- > 0) return;
  if (every_kth_.size() == most_kept_for_drift) {
    for (std::size_t i = 0; i < most_kept_for_drift / 2; ++i) every_kth_[i] = every_kth_[2 * i];
    every_kth_.resize(most_kept_for_drift / 2);
    kth_ *= 2;
  }
  every_kth_.push_back(dt_ms);
  until_next_ = kth_ - 1;
}

void SummaryBuilder::finish_exact() {
  summary_.warmup_steps = warmup_steps(summary_.steps, asked_warmup_);
  if (head_.empty()) return;
  if (asked_warmup_ < 0) {
    const auto end = warmup_end(head_.dt_ms, static_cast<std::size_t>(summary_.warmup_steps));
    summary_.warmup_steps = static_cast<std::int64_t>(end);
  }
  std::vector<double> steady = steady_dt_ms(head_, summary_);
  if (steady.empty()) return;
  for (auto i = static_cast<std::size_t>(summary_.warmup_steps); i < others_.size(); ++i)
    count_disturbed(head_.dt_ms[i], others_[i]);
  summary_.drift = std::expm1(log_trend(steady) * static_cast<double>(steady.size() - 1));
  const Spikes spikes = find_spikes(head_, static_cast<std::size_t>(summary_.warmup_steps));
  summary_.spikes = static_cast<std::int64_t>(spikes.at.size());
  summary_.spike_period = static_cast<std::int64_t>(spikes.period);
  summary_.pauses = static_cast<std::int64_t>(spikes.pauses);
  const StepGrain grain = grain_of(steady, from_);
  summary_.dt_grain_ms = grain.ms;
  if (grain.is_coarse) summary_.dt_ms_median = median_of(resolved_steps(steady, grain));
  summary_.dt_ms_p5 = quantile(steady, 0.05);
  summary_.dt_ms_p95 = quantile(steady, 0.95);
  if (!grain.is_coarse) summary_.dt_ms_median = quantile(steady, 0.5);
  summary_.dt_ms_p25 = quantile(steady, 0.25);
  summary_.dt_ms_p75 = quantile(steady, 0.75);
}

void SummaryBuilder::finish_bounded() {
  if (summary_.warmup_steps >= summary_.steps) {  // as asked; but one step always counts
    summary_.warmup_steps = summary_.steps - 1;
    take_steady(last_dt_ms_, {});
  }
  if (steady_.count() == 0) return;
  summary_.drift = std::expm1(log_trend(every_kth_) * static_cast<double>(every_kth_.size() - 1));
  summary_.dt_ms_p5 = steady_.quantile(0.05);
  summary_.dt_ms_p25 = steady_.quantile(0.25);
  summary_.dt_ms_median = steady_.quantile(0.5);
  summary_.dt_ms_p75 = steady_.quantile(0.75);
  summary_.dt_ms_p95 = steady_.quantile(0.95);
  summary_.spikes = steady_.above(spike_limit(summary_.dt_ms_median, summary_.dt_ms_p75));
  summary_.pauses = std::min(summary_.spikes, steady_.above(pause_limit(summary_.dt_ms_median)));
}

Summary SummaryBuilder::finish() {
  if (summary_.steps > static_cast<std::int64_t>(exact_steps_))
    finish_bounded();
  else
    finish_exact();
  // An evaluation before the first step is no step that lacks a time; in a run without times it changes nothing.
  if (begins_with_evaluation_ && summary_.untimed_steps < summary_.steps) --summary_.untimed_steps;
  if (summary_.disturbed_steps == 0) summary_.disturbance = {};
  Contention& means = summary_.disturbance;
  for (double* sum : {&means.other_cores, &means.program_cores, &means.other_gpu_load})
    if (!is_missing(*sum)) *sum /= static_cast<double>(summary_.disturbed_steps);
  if (is_missing(summary_.dt_ms_median)) return summary_;

  const bool alike = tokens_changed_ <= summary_.warmup_steps;  // a changing batch has no single figure
  const std::int64_t tokens_per_step = tokens_per_step_ > 0 ? tokens_per_step_ : alike ? tokens_ : 0;
  if (tokens_per_step <= 0) return summary_;
  const auto tokens_per_s = [&](double dt_ms) { return static_cast<double>(tokens_per_step) * 1000.0 / dt_ms; };
  summary_.tokens_per_s = tokens_per_s(summary_.dt_ms_median);
  summary_.tokens_per_s_p25 = tokens_per_s(summary_.dt_ms_p75);
  summary_.tokens_per_s_p75 = tokens_per_s(summary_.dt_ms_p25);
  return summary_;
}

Summary summarise(const Series& series, std::int64_t asked_warmup, std::int64_t tokens_per_step,
                  std::span<const SystemMetrics> metrics, ReadFrom from) {
  SummaryBuilder builder(asked_warmup, tokens_per_step, SummaryBuilder::most_exact_steps, from);
  WallClock wall_clock;
  ContentionOfSteps contention(metrics);
  for (std::size_t i = 0; i < series.size(); ++i) {
    const StepRecord step{.step = series.step[i],
                          .loss = series.loss[i],
                          .val_loss = series.val_loss[i],
                          .dt_ms = series.dt_ms[i],
                          .tokens = series.tokens[i],
                          .at = series.at[i]};
    builder.add(step, contention.during(step.at, step.dt_ms));
    wall_clock.add(step);
  }
  Summary summary = builder.finish();
  wall_clock.complete(summary);
  return summary;
}

Summary summarise(const Run& run, const Series& series, std::span<const SystemMetrics> metrics) {
  return summarise(series, run.warmup_steps, run.tokens_per_step, metrics, read_from(run));
}

void FineHistogram::add(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // in [0.5, 1)
  int octave = exponent - 1 - lowest_octave;
  auto bin = static_cast<int>((2 * mantissa - 1) * bins_per_octave);
  if (octave < 0) octave = bin = 0;
  if (octave >= octaves) {
    octave = octaves - 1;
    bin = bins_per_octave - 1;
  }
  std::vector<Bin>& bins = bins_[static_cast<std::size_t>(octave)];
  if (bins.empty()) bins.resize(bins_per_octave);
  Bin& into = bins[static_cast<std::size_t>(bin)];
  ++into.count;
  into.sum += value;
  ++count_;
}

double FineHistogram::order_statistic(std::int64_t rank) const {
  std::int64_t passed = 0;
  for (const std::vector<Bin>& octave : bins_) {
    for (const Bin& bin : octave) {
      passed += bin.count;
      if (passed > rank) return bin.sum / static_cast<double>(bin.count);
    }
  }
  return missing;
}

double FineHistogram::quantile(double q) const {
  if (count_ == 0) return missing;
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1);
  const auto below = static_cast<std::int64_t>(place);
  const double fraction = place - static_cast<double>(below);
  const double lower = order_statistic(below);
  return fraction == 0 ? lower : lower + (order_statistic(below + 1) - lower) * fraction;
}

std::int64_t FineHistogram::above(double limit) const {
  std::int64_t sum = 0;
  for (const std::vector<Bin>& octave : bins_)
    for (const Bin& bin : octave)
      if (bin.count > 0 && bin.sum > limit * static_cast<double>(bin.count)) sum += bin.count;
  return sum;
}

}  // namespace stepladder
