#include "storage/importers/logs/run_builder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "storage/analysis/summary.h"
#include "storage/importers/logs/units.h"

namespace stepladder {
namespace {

// So many steps are looked at before the units are settled; and so many are kept back afterwards, since a validation
// loss may come some lines late.
constexpr std::size_t steps_to_judge_by = 65536;
constexpr std::size_t live_steps_to_judge_by = 3;
constexpr std::size_t kept_back = 64;
constexpr std::size_t told_at_once = 512;

// How far from the truth a number is that was printed with three digits.
constexpr double rounding_of_short_numbers = 0.006;

// A clock of whole seconds tells a longer time to within 2 %.
constexpr double least_whole_seconds = 50;

constexpr int most_late_notes = 20;

// Of so many printed rates the median says something of the run.
constexpr std::size_t least_rates = 4;

// Steps that are this many times longer than the time stamps' resolution can be timed by them.
constexpr double least_resolved = 10;

// A time that has grown from step to step this often is no step time but a clock.
constexpr std::size_t least_clock_steps = 6;

bool same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// The same loss printed twice, once with fewer digits.
bool same_loss(double a, double b) {
  return same_number(a, b) || std::fabs(a - b) <= 1e-3 * std::fabs(a);
}

void fill(double& into, double value) {
  if (is_missing(into)) into = value;
}

void overwrite(double& into, double value) {
  if (!is_missing(value)) into = value;
}

std::string short_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

}  // namespace

void RunBuilder::begin(Run run, LogFacts facts, std::string log_family) {
  end();
  *this = RunBuilder(*options_, *sink_);
  run_ = std::move(run);
  facts_ = std::move(facts);
  family = std::move(log_family);
  open_ = true;
}

void RunBuilder::labels(const StepLine& line) {
  if (time_unit_ == TimeUnit::unknown && !is_missing(line.time)) time_unit_ = line.time_unit;
  if (elapsed_unit_ == TimeUnit::unknown && !is_missing(line.elapsed)) elapsed_unit_ = line.elapsed_unit;
  if (rate_ == RateLabel::none && !is_missing(line.throughput)) {
    rate_ = line.rate;
    rate_text_ = line.rate_text;
  }
  if (run_.planned_steps == 0 && line.total > 0) run_.planned_steps = line.total;
}

void RunBuilder::add(const StepLine& labelled, PrintedStep printed) {
  labels(labelled);
  const auto turn = [](double& value, TimeUnit from, TimeUnit into) {
    if (from == into || from == TimeUnit::unknown || into == TimeUnit::unknown || is_missing(value)) return;
    value *= milliseconds_in(from) / milliseconds_in(into);
  };
  turn(printed.time, labelled.time_unit, time_unit_);
  turn(printed.elapsed, labelled.elapsed_unit, elapsed_unit_);
  if (labelled.interval) {
    const std::int64_t gap = count_ > 0 ? printed.step - last_step_ : 0;
    printed.time = gap > 0 ? printed.time / static_cast<double>(gap) : missing;
  }
  if (!is_missing(printed.throughput) && labelled.rate != rate_) printed.throughput = missing;
  validated_ |= !is_missing(printed.val_loss) && !labelled.tested;
  rounded_tokens_ |= labelled.rounded_tokens;
  if (labelled.from_perplexity && !std::exchange(from_perplexity_, true))
    sink_->note(printed.line, "no loss is printed: it is the logarithm of the perplexity");
  add(printed);
}

PrintedStep* RunBuilder::find(std::int64_t step) {
  const std::size_t first = std::max(attempt_, pending_.size() - std::min(pending_.size(), kept_back));
  for (std::size_t i = pending_.size(); i > first; --i)
    if (pending_[i - 1].step == step) return &pending_[i - 1];
  return nullptr;
}

// Takes what the line adds to a step that is there; false where it contradicts, so that both have to be kept.
bool RunBuilder::merge(PrintedStep& into, const PrintedStep& printed) const {
  // Several processes that print the same step: the first one's line counts.
  if (printed.rank >= 0 && into.rank >= 0 && printed.rank != into.rank) {
    if (printed.rank > into.rank) return true;
    for (double StepValues::*value : step_values) overwrite(into.*value, printed.*value);
    into.rank = printed.rank;
    return true;
  }
  if (printed.redrawn && into.redrawn) {
    for (double StepValues::*value : step_values) overwrite(into.*value, printed.*value);
    return true;
  }
  const bool both_losses = !is_missing(into.loss) && !is_missing(printed.loss);
  const bool both_times = !is_missing(into.time) && !is_missing(printed.time);
  if (both_losses && !into.estimate && !printed.estimate && !same_loss(into.loss, printed.loss)) return false;
  // Once in seconds and once in milliseconds: with the same loss beside it, a time may be rounded.
  const double rounding = both_losses && same_number(into.loss, printed.loss) ? 0.05 : 1e-3;
  if (both_times && !(std::fabs(into.time - printed.time) <= rounding * std::fabs(into.time)) &&
      !same_number(into.time, printed.time))
    return false;
  if (into.estimate && !printed.estimate && !is_missing(printed.loss)) {
    into.loss = printed.loss;
    into.estimate = false;
  }
  overwrite(into.val_loss, printed.val_loss);
  for (double StepValues::*value : step_values) fill(into.*value, printed.*value);
  fill(into.at, printed.at);
  return true;
}

void RunBuilder::add(const PrintedStep& printed) {
  if (count_ > 0 && printed.step <= last_step_) {
    if (PrintedStep* there = find(printed.step); there && merge(*there, printed)) return;
    if (is_missing(printed.loss) && is_missing(printed.time) && is_missing(printed.elapsed)) {
      // A newer attempt without a loss would hide the one that has it.
      late(printed.line, "says something of step " + std::to_string(printed.step) + ", which is long past");
      return;
    }
    // A whole block that is printed again, once with and once without times.
    if (!told_ && !is_missing(printed.loss)) {
      for (std::size_t i = replay_; i < pending_.size() && pending_[i].step <= printed.step; ++i) {
        PrintedStep& there = pending_[i];
        if (there.step != printed.step || !same_number(there.loss, printed.loss)) continue;
        if (!is_missing(there.time) && !is_missing(printed.time)) break;
        replay_ = i + 1;
        merge(there, printed);
        return;
      }
    }
    attempt_ = replay_ = pending_.size();
  }
  if (count_ == 0) {
    first_step_ = printed.step;
    if (run_.planned_steps < 0) run_.planned_steps = 0;
  }
  pending_.push_back(printed);
  if (count_ == 0) fill(pending_.back().val_loss, early_val_loss_);
  ++count_;
  last_step_ = printed.step;

  if (!decided_ && pending_.size() >= (options_->live ? live_steps_to_judge_by : steps_to_judge_by)) decide();
  if (decided_) {
    if (options_->live)
      tell(1);
    else if (pending_.size() >= told_at_once)
      tell(kept_back);
  }
}

void RunBuilder::validate(double val_loss, bool tested, std::int64_t line) {
  if (tested && validated_) return;
  validated_ |= !tested;
  if (!pending_.empty())
    pending_.back().val_loss = val_loss;
  else if (count_ == 0)
    early_val_loss_ = val_loss;
  else
    late(line, "a validation loss of a step that is long past");
}

void RunBuilder::late(std::int64_t line, const std::string& what) {
  if (++late_ <= most_late_notes) sink_->note(line, "skipped: " + what);
}

bool RunBuilder::complete(double loss) {
  if (!lacks_loss()) return false;
  pending_.back().loss = loss;
  return true;
}

bool RunBuilder::renumber_first(std::int64_t step) {
  if (count_ != 1 || pending_.size() != 1 || first_step_ != 1) return false;
  pending_.front().step = first_step_ = last_step_ = step;
  return true;
}

// Whether what is called a time has grown with every step, as only the time since the start does.
bool RunBuilder::time_is_a_clock() const {
  std::size_t grown = 0;
  double first = missing, last = missing;
  for (const PrintedStep& step : pending_) {
    if (is_missing(step.time)) continue;
    if (!is_missing(last)) {
      if (!(step.time > last)) return false;
      ++grown;
    } else {
      first = step.time;
    }
    last = step.time;
  }
  return grown >= least_clock_steps && last > 2.5 * first;
}

// Whether what is called a time since the start falls as often as it grows, as only a step's own time does.
bool RunBuilder::elapsed_is_a_step() const {
  std::size_t grown = 0, fallen = 0;
  double last = missing;
  for (const PrintedStep& step : pending_) {
    if (!is_missing(step.time)) return false;
    if (is_missing(step.elapsed)) continue;
    if (!is_missing(last)) ++(step.elapsed > last ? grown : fallen);
    last = step.elapsed;
  }
  return grown + fallen >= least_clock_steps / 2 && fallen * 4 > grown + fallen;
}

// Whether a clock of whole seconds is too coarse for these steps, while a rate tells their time.
bool RunBuilder::clock_is_coarse() const {
  std::vector<double> between;
  double last = missing;
  for (const PrintedStep& step : pending_) {
    if (!is_missing(step.time) || is_missing(step.throughput)) return false;
    if (is_missing(step.elapsed)) continue;
    if (step.elapsed != std::floor(step.elapsed)) return false;
    if (!is_missing(last)) between.push_back(step.elapsed - last);
    last = step.elapsed;
  }
  return !between.empty() && quantile(between, 0.5) < least_whole_seconds;
}

// The tokens of a step, from the surest source that says them.
void RunBuilder::settle_tokens() {
  if (options_->tokens_per_step > 0) {
    tokens_per_step_ = options_->tokens_per_step;
    return;
  }
  if (step_is_epoch) return;
  // A column of tokens: the same on every line, or counting up.
  double first = missing, last = missing;
  std::int64_t first_step = 0, last_step = 0, seen = 0;
  double per_step = missing;
  bool constant = true, even = true;
  for (const PrintedStep& step : pending_) {
    if (is_missing(step.tokens) || !std::isfinite(step.tokens)) continue;
    if (++seen == 1) {
      first = step.tokens;
      first_step = step.step;
    } else {
      constant &= step.tokens == first;
      const double gap = static_cast<double>(step.step - last_step);
      const double grown = gap > 0 ? (step.tokens - last) / gap : missing;
      if (is_missing(per_step)) per_step = grown;
      even &= !is_missing(grown) && std::fabs(grown - per_step) <= 0.01 * per_step;
    }
    last = step.tokens;
    last_step = step.step;
  }
  if (seen > 1 && first > 0 && last < 1e15) {
    if (constant && !rounded_tokens_) tokens_per_step_ = std::llround(first);
    const double slope = last_step > first_step ? (last - first) / static_cast<double>(last_step - first_step) : 0;
    if (!constant && rounded_tokens_) tokens_per_step_ = roundest(slope, rounding_of_short_numbers * slope);
    if (!constant && !rounded_tokens_ && even && per_step >= 1) {
      tokens_per_step_ = std::llround(slope);
      sink_->note(pending_.front().line, "the tokens so far grow by " + std::to_string(tokens_per_step_) + " a step");
    }
    if (tokens_per_step_ > 0) return;
  }
  if (!is_missing(pending_.front().batch_size) && pending_.front().batch_size > 0 && facts_.global_batch == 0)
    facts_.global_batch = std::llround(std::min(pending_.front().batch_size, 1e9));
}

// Seconds of a step by the time stamps of the lines; missing where there are none or they are too coarse.
double RunBuilder::stamped_time() const {
  std::vector<double> per_step, between;
  bool whole = true;
  for (std::size_t i = 1; i < pending_.size(); ++i) {
    const double apart = pending_[i].at - pending_[i - 1].at;
    const double gap = static_cast<double>(pending_[i].step - pending_[i - 1].step);
    if (is_missing(pending_[i].at) || is_missing(pending_[i - 1].at) || !(apart >= 0) || !(gap > 0)) continue;
    whole &= pending_[i].at == std::floor(pending_[i].at);
    between.push_back(apart);
    per_step.push_back(apart / gap);
  }
  const double resolution = whole ? 1 : 0.001;
  return between.empty() || quantile(between, 0.5) < least_resolved * resolution ? missing : quantile(per_step, 0.5);
}

// No line says how long a step took. Its time stamps do; and where tokens and their rate are known, they tell of how
// many devices the rate is.
void RunBuilder::judge_stamps(double tokens, double printed_rate) {
  const double seconds = stamped_time();
  if (is_missing(seconds)) return;
  stamps_are_clock_ = true;
  const std::int64_t line = pending_.front().line;
  if (tokens > 0 && tokens_rate_to_s_ > 0 && printed_rate > 0) {
    const double devices = tokens / (seconds * printed_rate * tokens_rate_to_s_);
    const std::int64_t count = small_count(devices, 0.05);
    if (count > 1 && ((count & (count - 1)) == 0 || count % 8 == 0 || count == facts_.devices)) {
      tokens_rate_to_s_ *= static_cast<double>(count);
      sink_->note(line, short_text(tokens) + " tokens in " + short_text(seconds) + " s by the lines' time stamps are " +
                            std::to_string(count) + " x " + short_text(printed_rate) +
                            ": the rate is that of one device");
      return;
    }
    if (devices < 1.25) return;
    tokens_rate_to_s_ = 0;  // of what it is the rate is not known
  }
  if (!rate_is_iterations_) sink_->note(line, "no step time is printed: it was taken from the lines' time stamps");
}

// What is called a time may be a clock, and what is called a clock a time.
void RunBuilder::settle_clocks() {
  const std::int64_t line = pending_.front().line;
  time_is_clock_ = time_is_a_clock();
  if (time_is_clock_) {
    sink_->note(line, "the time grows with every step, so it counts from the start: differences were taken");
    for (PrintedStep& step : pending_)
      if (!is_missing(step.time)) step.elapsed = std::exchange(step.time, missing);
    elapsed_unit_ = time_unit_;
  }

  clock_is_coarse_ = clock_is_coarse();
  if (clock_is_coarse_)
    for (PrintedStep& step : pending_) step.elapsed = missing;
  elapsed_is_a_step_ = elapsed_is_a_step();
  if (elapsed_is_a_step_) {
    sink_->note(line, "the time since the start does not grow, so it was taken for that of a step");
    for (PrintedStep& step : pending_) step.time = std::exchange(step.elapsed, missing);
    time_unit_ = elapsed_unit_;
  }
}

UnitEvidence RunBuilder::evidence_of_units(const LogFacts::Tokens& worked_out) const {
  UnitEvidence evidence;
  evidence.rate = rate_;
  evidence.rate_text = rate_text_;
  evidence.seq = facts_.seq;
  evidence.tokens_per_step = tokens_per_step_;
  evidence.tokens_are_certain = tokens_per_step_ > 0;
  if (tokens_per_step_ == 0 && !step_is_epoch) {
    evidence.tokens_per_step = worked_out.count;
    evidence.tokens_are_certain = worked_out.certain;
  }
  bool timed = false, clocked = false;
  std::vector<double> gaps;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const PrintedStep& step = pending_[i];
    PrintedRate printed{.time = step.time, .rate = step.throughput};
    if (i > 0) {
      const double gap = static_cast<double>(step.step - pending_[i - 1].step);
      if (gap > 0) gaps.push_back(gap);
      if (is_missing(step.time) && !is_missing(step.elapsed) && !is_missing(pending_[i - 1].elapsed) && gap > 0)
        printed.time = (step.elapsed - pending_[i - 1].elapsed) / gap;
    }
    timed |= !is_missing(step.time);
    clocked |= !is_missing(step.elapsed);
    evidence.steps.push_back(printed);
  }
  if (!gaps.empty()) evidence.steps_between = std::llround(quantile(gaps, 0.5));
  evidence.time_unit = timed ? time_unit_ : elapsed_unit_;
  evidence.since_start = !timed && clocked;
  if (step_is_epoch && evidence.time_unit == TimeUnit::unknown) evidence.time_unit = TimeUnit::s;
  return evidence;
}

void RunBuilder::decide() {
  decided_ = true;
  if (pending_.empty()) return;
  const std::int64_t line = pending_.front().line;
  settle_tokens();
  settle_clocks();
  const LogFacts::Tokens worked_out = facts_.tokens_per_step();
  const UnitEvidence evidence = evidence_of_units(worked_out);
  const Units units = infer_units(evidence);
  ms_per_time_ = units.ms_per_time;
  per_step_ = units.per_step;
  unit_ = units.unit;
  if (tokens_per_step_ == 0 || !evidence.tokens_are_certain) tokens_per_step_ = units.tokens_per_step;
  rate_is_iterations_ = units.rate == RateMeaning::iterations_per_s;
  if (units.rate == RateMeaning::tokens_per_s) tokens_rate_to_s_ = units.rate_scale;
  if (units.rate == RateMeaning::tokens_per_ms) tokens_rate_to_s_ = 1000 * units.rate_scale;
  if (units.rate == RateMeaning::samples_per_s && facts_.seq > 0) tokens_rate_to_s_ = static_cast<double>(facts_.seq);

  std::vector<double> rates;
  for (const PrintedRate& step : evidence.steps)
    if (step.rate > 0 && std::isfinite(step.rate)) rates.push_back(step.rate);
  const double rate = quantile(rates, 0.5);
  const bool timed = std::any_of(pending_.begin(), pending_.end(), [](const PrintedStep& step) {
    return !is_missing(step.time) || !is_missing(step.elapsed);
  });
  if (!timed) judge_stamps(static_cast<double>(tokens_per_step_), rate);
  if (timed && tokens_rate_to_s_ > 0 && rates.size() >= least_rates) printed_tokens_per_s_ = rate * tokens_rate_to_s_;

  if (!worked_out.how.empty() && options_->tokens_per_step == 0 && tokens_per_step_ == worked_out.count)
    sink_->note(line, "tokens per step: " + worked_out.how + " = " + std::to_string(worked_out.count));
  if (!units.arithmetic.empty()) sink_->note(line, units.arithmetic);
  if (timed && evidence.time_unit == TimeUnit::unknown)
    sink_->note(line, std::string("the step time has no unit and was taken for ") +
                          (ms_per_time_ >= 1000 ? "seconds" : "milliseconds"));
  if (tokens_per_step_ == 0 && !step_is_epoch && (timed || !rate_text_.empty()))
    sink_->note(line, "tokens per step are not known, so there are no tokens/s: give --tokens-per-step");
  if (step_is_epoch) sink_->note(line, "the log counts epochs, so a step here is an epoch");
}

void RunBuilder::tell(std::size_t keep) {
  if (pending_.size() <= keep) return;
  if (!told_) {
    told_ = true;
    run_.tokens_per_step = tokens_per_step_;
    sink_->begin_run(run_);
  }
  const std::size_t count = pending_.size() - keep;
  for (std::size_t i = 0; i < count; ++i) tell(pending_[i]);
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  attempt_ -= std::min(attempt_, count);
  replay_ = pending_.size();
}

void RunBuilder::tell(const PrintedStep& printed) {
  StepRecord step;
  step.step = printed.step;
  step.loss = printed.loss;
  step.val_loss = printed.val_loss;
  step.lr = printed.lr;
  step.grad_norm = printed.grad_norm;
  step.at = printed.at;
  step.tokens = tokens_per_step_;

  double time = printed.time, elapsed = clock_is_coarse_ ? missing : printed.elapsed;
  if (elapsed_is_a_step_ && is_missing(time)) time = std::exchange(elapsed, missing);
  if (time_is_clock_ && is_missing(elapsed)) elapsed = std::exchange(time, missing);
  if (!is_missing(time)) {
    step.dt_ms = time * ms_per_time_ / per_step_;
  } else if (!is_missing(elapsed)) {
    const std::int64_t gap = printed.step - last_clock_step_;
    if (is_missing(last_clock_)) {
      if (printed.step == 1 || (printed.step == 0 && !is_missing(printed.loss))) step.dt_ms = elapsed * ms_per_time_;
    } else if (gap > 0 && elapsed >= last_clock_) {
      step.dt_ms = (elapsed - last_clock_) * ms_per_time_ / static_cast<double>(gap);
    } else if (gap > 0) {
      // The clock was set back to zero, at the end of a warm-up: what it shows is the time since then.
      const double steps = std::isfinite(printed.mean_time) && printed.mean_time > 0
                               ? std::max(1.0, std::round(elapsed / printed.mean_time))
                               : static_cast<double>(gap);
      step.dt_ms = elapsed * ms_per_time_ / steps;
      if (!std::exchange(clock_restart_noted_, true))
        sink_->note(printed.line, "the clock starts again at step " + std::to_string(printed.step) + " (" +
                                      short_text(last_clock_) + ", then " + short_text(elapsed) +
                                      "): a warm-up ended there");
    }
    last_clock_ = elapsed;
    last_clock_step_ = printed.step;
  } else if (printed.throughput > 0 && std::isfinite(printed.throughput) &&
             (rate_is_iterations_ || (tokens_rate_to_s_ > 0 && tokens_per_step_ > 0))) {
    if (rate_is_iterations_)
      step.dt_ms = 1000 / printed.throughput;
    else
      step.dt_ms = 1000 * static_cast<double>(tokens_per_step_) / (printed.throughput * tokens_rate_to_s_);
    if (!is_missing(step.dt_ms) && !std::exchange(rate_time_noted_, true))
      sink_->note(printed.line, "no step time is printed: it was worked out from the rate, " +
                                    short_text(printed.throughput) + " " + unit_);
  } else if (stamps_are_clock_ && !is_missing(printed.at)) {
    const std::int64_t gap = printed.step - last_clock_step_;
    if (!is_missing(last_clock_) && gap > 0 && printed.at >= last_clock_)
      step.dt_ms = (printed.at - last_clock_) * 1000 / static_cast<double>(gap);
    last_clock_ = printed.at;
    last_clock_step_ = printed.step;
  }
  timed_ |= !is_missing(step.dt_ms);
  sink_->step(step);
}

void RunBuilder::end() {
  if (!open_) return;
  open_ = false;
  if (late_ > most_late_notes)
    sink_->note(0, std::to_string(late_ - most_late_notes) + " more lines speak of steps that are long past");
  if (!decided_) decide();
  run_.recipe = facts_.recipe_json(family);
  run_.device = facts_.device;
  run_.hardware = options_->hardware.empty() ? facts_.hardware : options_->hardware;
  run_.precision = facts_.precision;
  run_.params = options_->params > 0 ? options_->params : facts_.params;
  if (run_.params > 0) run_.model_flops_per_token = 6.0 * static_cast<double>(run_.params);
  tell(0);
  if (!told_) {
    told_ = true;
    sink_->begin_run(run_);
  }
  run_.tokens_per_step = tokens_per_step_;
  if (unit_.empty()) {
    if (!rate_text_.empty())
      unit_ = "unknown, printed as " + rate_text_;
    else if (tokens_per_step_ > 0 && timed_)
      unit_ = "tokens/s, worked out from tokens per step and step time";
    else
      unit_ = "none printed";
  }
  run_.printed = {.unit = unit_, .tokens_per_s = printed_tokens_per_s_};
  sink_->end_run(run_);
}

}  // namespace stepladder
