// Merges lines about the same step within the last 64. Equal step, compatible values: one step. Contradiction: a newer
// attempt, and both are kept. A block that is printed again with other columns fills in the first one (find_replayed).
#include "storage/importers/logs/step_merger.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepladder {
namespace {

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

void overwrite_all(PrintedStep& into, const PrintedStep& printed) {
  for (double StepValues::*value : step_values) overwrite(into.*value, printed.*value);
}

// Whether two lines give the same step different losses or times.
bool contradicts(const PrintedStep& there, const PrintedStep& printed) {
  const bool both_losses = !is_missing(there.loss) && !is_missing(printed.loss);
  if (both_losses && !there.estimate && !printed.estimate && !same_loss(there.loss, printed.loss)) return true;
  if (is_missing(there.time) || is_missing(printed.time)) return false;
  // Printed once in seconds and once in milliseconds: if the loss is the same, a time may be rounded.
  const double rounding = both_losses && same_number(there.loss, printed.loss) ? 0.05 : 1e-3;
  return !(std::fabs(there.time - printed.time) <= rounding * std::fabs(there.time)) &&
         !same_number(there.time, printed.time);
}

// Adds a micro-step to those before: the loss of all is the mean, the time the sum. The step's own line replaces them.
bool merge_parts(PrintedStep& into, const PrintedStep& printed) {
  if (printed.micro < 0) {
    overwrite_all(into, printed);
    into.micro = -1;
    into.line = printed.line;
    fill(into.at, printed.at);
    return true;
  }
  if (into.micro < 0) return true;
  if (printed.micro <= into.micro) return false;
  const auto parts = static_cast<double>(into.parts++);
  into.loss = (into.loss * parts + printed.loss) / (parts + 1);
  into.time += printed.time;
  into.micro = printed.micro;
  return true;
}

// Adds the line's values to a known step; false if they contradict it.
bool merge(PrintedStep& into, const PrintedStep& printed) {
  // Several processes that print the same step: the line of the lowest rank counts.
  if (printed.rank >= 0 && into.rank >= 0 && printed.rank != into.rank) {
    if (printed.rank > into.rank) return true;
    overwrite_all(into, printed);
    into.rank = printed.rank;
    return true;
  }
  if (printed.micro >= 0 || into.micro >= 0) return merge_parts(into, printed);
  if (printed.redrawn && into.redrawn) {
    overwrite_all(into, printed);
    into.iteration = printed.iteration;
    return true;
  }
  if (contradicts(into, printed)) return false;
  if (into.estimate && !printed.estimate && !is_missing(printed.loss)) {
    into.loss = printed.loss;
    into.estimate = false;
  }
  overwrite(into.val_loss, printed.val_loss);
  for (double StepValues::*value : step_values) fill(into.*value, printed.*value);
  fill(into.at, printed.at);
  return true;
}

}  // namespace

StepMerger::Added StepMerger::add(const PrintedStep& printed) {
  if (printed.tested && validated_ && !is_missing(printed.val_loss)) {  // a test set's loss replaces none
    PrintedStep rest = printed;
    rest.val_loss = missing;
    return add(rest);
  }
  validated_ |= !is_missing(printed.val_loss) && !printed.tested;
  if (count_ > 0 && printed.step <= last_step_) {
    if (PrintedStep* there = find(printed.step); there && merge(*there, printed)) return Added::known_step;
    // A newer attempt without a loss would hide the attempt that has one.
    if (is_missing(printed.loss) && is_missing(printed.time) && is_missing(printed.elapsed)) return Added::too_late;
    if (PrintedStep* there = find_replayed(printed)) {
      merge(*there, printed);
      return Added::known_step;
    }
    attempt_ = replay_ = held_.size();
    ++restarts_;
  }
  if (count_ == 0) {
    first_step_ = printed.step;
    val_losses_lead_ = printed.step == 0 && !is_missing(early_val_loss_);
    if ((printed.step == 1 || (early_is_untrained_ && printed.step > 1)) && !is_missing(early_val_loss_)) {
      PrintedStep& before = held_.emplace_back();
      before.line = printed.line;
      before.val_loss = std::exchange(early_val_loss_, missing);
      ++count_;
    }
  }
  held_.push_back(printed);
  fill(held_.back().val_loss, std::exchange(early_val_loss_, missing));
  ++count_;
  last_step_ = printed.step;
  return Added::new_step;
}

PrintedStep* StepMerger::find(std::int64_t step) {
  const std::size_t first = std::max(attempt_, held_.size() - std::min(held_.size(), held_back));
  for (std::size_t i = held_.size(); i > first; --i)
    if (held_[i - 1].step == step) return &held_[i - 1];
  return nullptr;
}

// A whole block may be printed again, once with and once without times: the step of the first block.
PrintedStep* StepMerger::find_replayed(const PrintedStep& printed) {
  if (released_ || is_missing(printed.loss)) return nullptr;
  for (std::size_t i = replay_; i < held_.size() && held_[i].step <= printed.step; ++i) {
    PrintedStep& there = held_[i];
    if (there.step != printed.step || !same_number(there.loss, printed.loss)) continue;
    if (!is_missing(there.time) && !is_missing(printed.time)) return nullptr;
    replay_ = i + 1;
    return &there;
  }
  return nullptr;
}

bool StepMerger::validate(double val_loss, bool tested) {
  if (tested && validated_) return true;
  validated_ |= !tested;
  if (!held_.empty() && !val_losses_lead_)
    held_.back().val_loss = val_loss;
  else if (count_ == 0 || val_losses_lead_)
    early_val_loss_ = val_loss;
  else
    return false;
  return true;
}

double StepMerger::finish() {
  if (held_.empty()) return missing;
  if (is_missing(held_.back().val_loss)) held_.back().val_loss = std::exchange(early_val_loss_, missing);
  return early_val_loss_;
}

void StepMerger::renumber_first(std::int64_t step) {
  held_.front().step = first_step_ = last_step_ = step;
}

void StepMerger::release(std::size_t count) {
  released_ |= count > 0;
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
  attempt_ -= std::min(attempt_, count);
  replay_ = held_.size();
}

}  // namespace stepladder
