// Numbers steps that don't print a number, or that count from 0 in every epoch: bars, dictionaries, Keras, bare losses.
// Each case has a function, chosen in `number`; state is per run and reset in end_run. The comments quote the output
// that each rule is for.
#include "storage/importers/logs/step_counter.h"

#include <algorithm>
#include <cmath>

namespace stepladder {
namespace {

constexpr std::int64_t largest_step = 1'000'000'000'000'000;
constexpr double most_epochs = 1e9;

void read_printed(const LogLine& line, PrintedStep& printed) {
  static_cast<StepValues&>(printed) = line.step;
  printed.line = line.number;
  printed.rank = line.step.rank;
  printed.redrawn = line.step.bar;
  printed.at = line.at;
  // "step 250: train loss 3.1, val loss 3.2": both are means of an evaluation.
  const bool evaluation = !is_missing(line.step.loss) && !is_missing(line.step.val_loss) && line.step.named_loss &&
                          is_missing(line.step.time) && is_missing(line.step.elapsed) &&
                          is_missing(line.step.throughput);
  printed.estimate = evaluation || line.step.epoch_mean;
}

void take_as_step(std::int64_t step, Counted& counted) {
  counted.step.step = step;
  counted.what = step >= 0 && step <= largest_step ? Counted::What::step : Counted::What::out_of_bounds;
}

// Takes a line without a step number: its validation loss, if any, belongs to a step that was counted before.
void take_as_validation(const StepLine& line, Counted& counted) {
  if (!is_missing(line.val_loss)) counted.what = Counted::What::validation;
}

bool is_whole_epoch(double epoch) {
  return !is_missing(epoch) && epoch >= 0 && epoch == std::floor(epoch);
}

}  // namespace

Counted StepCounter::count(const LogLine& line, const RunProgress& run, bool new_block) {
  Counted counted{.line = &line.step};
  PrintedStep& printed = counted.step;
  read_printed(line, printed);
  // Some repeat the last validation loss on every line.
  if (!is_missing(printed.val_loss) && !printed.estimate) {
    if (!is_missing(printed.loss) && line.step.val_loss == repeated_val_loss_) printed.val_loss = missing;
    repeated_val_loss_ = line.step.val_loss;
  }
  number(line.step, run, new_block, counted);
  if (line.step.record && counted.what == Counted::What::step && counted.line == &line.step) time_by_bar(counted);
  if (counted.what == Counted::What::out_of_bounds) epoch_offset_ = 0;
  return counted;
}

void StepCounter::number(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted) {
  if (line.has_step()) return number_within_epoch(line, run, new_block, counted);
  if (line.batch >= 0 && line.has_loss()) return number_bar(line, new_block, counted);
  if (line.record) return number_record(line, run, new_block, counted);
  if (is_whole_epoch(line.epoch) && line.epoch < most_epochs && (!run.open || run.step_is_epoch || new_block))
    return take_as_step(static_cast<std::int64_t>(line.epoch), counted);
  take_as_validation(line, counted);
}

// Some count from the start in every epoch.
void StepCounter::number_within_epoch(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted) {
  const std::int64_t step = line.step;
  const double epoch = line.whole_epoch ? line.epoch : is_missing(line.epoch) ? epoch_ : missing;
  if (is_missing(epoch)) {
    epoch_offset_ = 0;
  } else {
    const bool starts_over = raw_step_ >= 0 && (line.whole_epoch ? step <= raw_step_ : step < raw_step_);
    if (!is_missing(offset_epoch_) && epoch > offset_epoch_ && starts_over && run.open && !new_block)
      epoch_offset_ = run.last_step + step_gap_ - step;
    offset_epoch_ = epoch;
  }
  if (raw_step_ >= 0 && step > raw_step_) step_gap_ = step - raw_step_;
  raw_step_ = step;
  take_as_step(step + epoch_offset_, counted);
}

Counted StepCounter::count_bare_loss(const LogLine& line, const RunProgress& run, bool new_block) const {
  if (!is_whole_epoch(epoch_) || epoch_ > most_epochs) return {};
  const auto step = static_cast<std::int64_t>(epoch_);
  if (run.open && !new_block && (!run.step_is_epoch || run.last_step == step)) return {};
  Counted counted{.step = PrintedStep(line.step), .line = &line.step};
  counted.step.line = line.number;
  take_as_step(step, counted);
  return counted;
}

void StepCounter::number_bar(const StepLine& line, bool new_block, Counted& counted) {
  if (is_missing(line.loss)) return take_as_validation(line, counted);  // a bar over the validation set
  double epoch = is_missing(line.epoch) ? epoch_ : line.epoch;
  if (is_missing(epoch)) {
    if (line.batch < loss_bar_.last_batch && !new_block) ++loss_bar_.implied_epoch;
    epoch = static_cast<double>(loss_bar_.implied_epoch);
  }
  loss_bar_.last_batch = line.batch;
  if (is_missing(loss_bar_.first_epoch) || epoch < loss_bar_.first_epoch) loss_bar_.first_epoch = epoch;
  const double before = std::clamp(epoch - loss_bar_.first_epoch, 0.0, 1e6) *
                        static_cast<double>(std::min<std::int64_t>(line.batches, 1'000'000'000));
  std::int64_t step = static_cast<std::int64_t>(before) + line.batch;
  if (line.bar && !line.keras) {
    // A bar that shows a loss at 0/N is drawn before its count goes up: 0 is the first step.
    if (line.batch == 0) loss_bar_.starts_with_loss = true;
    if (loss_bar_.starts_with_loss && line.batch == line.batches) return;
    if (loss_bar_.starts_with_loss) ++step;
    // Its postfix keeps showing the last validation loss.
    double& val_loss = counted.step.val_loss;
    if (!is_missing(val_loss) && val_loss == loss_bar_.val_loss) val_loss = missing;
    if (!is_missing(val_loss)) loss_bar_.val_loss = val_loss;
  }
  take_as_step(step, counted);
  if (line.keras) hold_unfinished(line, counted);
}

// Keras shows a mean over the epoch so far: only the finished bar is a figure, or the last of an epoch before.
void StepCounter::hold_unfinished(const StepLine& line, Counted& counted) {
  if (line.batch >= line.batches) return held_.reset();
  const HeldBar next{counted.step, line};
  counted = held_ && held_->step.step > next.step.step ? release_held() : Counted{};
  held_ = next;
  held_->line.rate_text = {};
}

Counted StepCounter::release_held() {
  if (!held_) return {};
  timed_ = held_->line;
  Counted counted{.step = held_->step, .line = &timed_};
  held_.reset();
  take_as_step(counted.step.step, counted);
  if (counted.what == Counted::What::out_of_bounds) epoch_offset_ = 0;
  return counted;
}

// Numbers a dictionary without a step: by the bar next to it, else as the next step.
void StepCounter::number_record(const StepLine& line, const RunProgress& run, bool new_block, Counted& counted) {
  if (is_missing(line.loss)) return take_as_validation(line, counted);
  const bool goes_on = run.open && !new_block;
  const std::int64_t last = goes_on ? run.last_step : 0;
  if (goes_on && run.lacks_loss) return take_as_step(last, counted);
  // A record for each epoch, while they count up.
  if (!goes_on) records_are_epochs_ = line.whole_epoch && bar_.step < 0;
  records_are_epochs_ &=
      line.whole_epoch && line.epoch < most_epochs && !(goes_on && line.epoch <= static_cast<double>(run.last_step));
  if (records_are_epochs_) return take_as_step(static_cast<std::int64_t>(line.epoch), counted);
  if (bar_.step > last && !bar_.follows) {
    step_gap_ = bar_.step - last;
    return take_as_step(bar_.step, counted);
  }
  take_as_step(last + (bar_.step >= 0 ? step_gap_ : 1), counted);
}

// A bar that counts the steps of dictionaries times them too.
void StepCounter::time_by_bar(Counted& counted) {
  if (bar_.step < 0 || !is_missing(counted.step.time) || !is_missing(counted.step.elapsed)) return;
  timed_ = *counted.line;
  counted.line = &timed_;
  timed_.time = counted.step.time = bar_.time;
  timed_.time_unit = TimeUnit::s;
  if (is_missing(timed_.throughput)) {
    timed_.throughput = counted.step.throughput = bar_.rate;
    timed_.rate = RateLabel::iterations;
    timed_.rate_text = "it/s";
  } else if (bar_.rate > 0) {
    timed_.time = counted.step.time = 1 / bar_.rate;
  }
}

std::optional<std::int64_t> StepCounter::follow_bar(const StepLine& line, const RunProgress& run, bool new_block) {
  // Downloads and evaluations have bars of their own; only a finished bar is replaced by another.
  if (line.batches != bar_.total && bar_.step != bar_.total && run.open) return std::nullopt;
  // The first bar was printed after the first dictionary, so each shows the step of the dictionary before it.
  const bool behind_first =
      bar_.step < 0 && line.batch > 0 && run.open && !new_block && run.steps == 1 && run.first_step == 1;
  bar_ = {.step = line.batch,
          .total = line.batches,
          .rate = line.throughput,
          .time = line.time,
          .follows = bar_.follows || behind_first};
  if (!behind_first) return std::nullopt;
  step_gap_ = line.batch;
  return line.batch;
}

void StepCounter::end_run() {
  epoch_ = offset_epoch_ = repeated_val_loss_ = missing;
  epoch_offset_ = 0;
  raw_step_ = -1;
  step_gap_ = 1;
  bar_.step = bar_.total = -1;
  bar_.follows = false;
  loss_bar_ = {};
}

}  // namespace stepladder
