// Which step a line speaks of, where it does not say so plainly: bars, records, epochs, losses without a count.
#include <algorithm>
#include <cmath>

#include "storage/importers/logs/step_log.h"

namespace stepladder {

// Finds the number of the step that a line speaks of; false where the line is done with.
bool StepLog::settle_step(const StepLine& line, PrintedStep& printed) {
  if (line.has_step()) {
    std::int64_t step = line.step;
    // Some count from the start in every epoch.
    const double epoch = line.whole_epoch ? line.epoch : is_missing(line.epoch) ? epoch_ : missing;
    if (!is_missing(epoch)) {
      if (!is_missing(offset_epoch_) && epoch > offset_epoch_ && raw_step_ >= 0 &&
          (line.whole_epoch ? step <= raw_step_ : step < raw_step_) && builder_.progress().open && !strong_)
        epoch_offset_ = builder_.progress().last_step + step_gap_ - step;
      offset_epoch_ = epoch;
    }
    if (raw_step_ >= 0 && step > raw_step_) step_gap_ = step - raw_step_;
    if (is_missing(epoch)) epoch_offset_ = 0;
    raw_step_ = step;
    printed.step = step + epoch_offset_;
    return true;
  }
  if (line.batch >= 0 && line.has_loss()) return settle_bar(line, printed);
  if (line.record) return settle_record(line, printed);
  const bool whole_epoch =
      !is_missing(line.epoch) && line.epoch >= 0 && line.epoch < 1e9 && line.epoch == std::floor(line.epoch);
  if (whole_epoch && !(builder_.progress().open && !builder_.progress().step_is_epoch && !strong_)) {
    printed.step = static_cast<std::int64_t>(line.epoch);
    return true;
  }
  if (!is_missing(line.val_loss)) validate(line);
  return false;
}

// A loss without a count: that of the epoch that a heading named, or of the step above that had none.
bool StepLog::take_bare_loss(std::string_view text, const StepLine& line) {
  if (builder_.progress().open && builder_.progress().lacks_loss) {
    builder_.complete_last(line.loss);
    return true;
  }
  if (is_missing(epoch_) || epoch_ < 0 || epoch_ != std::floor(epoch_) || epoch_ > 1e9) return false;
  PrintedStep printed(line);
  printed.step = static_cast<std::int64_t>(epoch_);
  printed.line = number_;
  if (builder_.progress().open && !strong_ &&
      (!builder_.progress().step_is_epoch || builder_.progress().last_step == printed.step))
    return false;
  record(text, line, printed);
  return true;
}

bool StepLog::settle_bar(const StepLine& line, PrintedStep& printed) {
  if (is_missing(line.loss)) {  // a bar over the validation set; its last value stays
    validate(line);
    return false;
  }
  double epoch = is_missing(line.epoch) ? epoch_ : line.epoch;
  if (is_missing(epoch)) {
    if (line.batch < last_batch_ && !strong_) ++implied_epoch_;
    epoch = static_cast<double>(implied_epoch_);
  }
  last_batch_ = line.batch;
  if (is_missing(first_epoch_) || epoch < first_epoch_) first_epoch_ = epoch;
  const double before = std::clamp(epoch - first_epoch_, 0.0, 1e6) *
                        static_cast<double>(std::min<std::int64_t>(line.batches, 1'000'000'000));
  printed.step = static_cast<std::int64_t>(before) + line.batch;

  if (line.keras) {
    // A mean over the epoch so far: only the finished bar is a figure.
    if (line.batch < line.batches) {
      if (held_bar_ && held_bar_->step > printed.step) take_held_bar();
      held_bar_ = printed;
      held_line_ = line;
      held_line_.rate_text = {};
      return false;
    }
    held_bar_.reset();
    return true;
  }
  if (line.bar) {
    // A bar that shows a loss at 0/N is drawn before its count goes up: 0 is the first step.
    if (line.batch == 0) bar_starts_with_loss_ = true;
    if (bar_starts_with_loss_) {
      if (line.batch == line.batches) return false;
      ++printed.step;
    }
    // Its postfix goes on showing the last validation loss.
    if (!is_missing(printed.val_loss) && printed.val_loss == bar_val_loss_) printed.val_loss = missing;
    if (!is_missing(printed.val_loss)) bar_val_loss_ = printed.val_loss;
  }
  return true;
}

// A dictionary without a step: the bar beside it knows, else it is the next one.
bool StepLog::settle_record(const StepLine& line, PrintedStep& printed) {
  if (is_missing(line.loss)) {
    if (!is_missing(line.val_loss)) validate(line);
    return false;
  }
  const bool goes_on = builder_.progress().open && !strong_;
  if (goes_on && builder_.progress().lacks_loss) {
    printed.step = builder_.progress().last_step;
    return true;
  }
  // A record for each epoch, while they count up.
  if (!goes_on) records_are_epochs_ = line.whole_epoch && bar_step_ < 0;
  if (records_are_epochs_ && line.whole_epoch &&
      !(goes_on && line.epoch <= static_cast<double>(builder_.progress().last_step)) && line.epoch < 1e9) {
    printed.step = static_cast<std::int64_t>(line.epoch);
    return true;
  }
  records_are_epochs_ = false;
  const std::int64_t last = goes_on ? builder_.progress().last_step : 0;
  if (bar_step_ > last && !bar_follows_) {
    step_gap_ = bar_step_ - last;
    printed.step = bar_step_;
  } else {
    printed.step = last + (bar_step_ >= 0 ? step_gap_ : 1);
  }
  return true;
}

void StepLog::validate(const StepLine& line) {
  if (builder_.progress().open && !(strong_ && weak_))
    builder_.validate(line.val_loss, line.tested, number_);
  else
    early_val_loss_ = line.val_loss;
}

}  // namespace stepladder
