// The time of a step by the wall clock: the median over blocks of eight gaps between the steps' ends. For summaries.
#pragma once

#include <cmath>
#include <cstdint>

#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

class WallClock {
 public:
  // In the order of steps.
  void add(const StepRecord& step) {
    if (step.at < at_before_ && backwards_step_ == 0) backwards_step_ = step.step;
    if (is_missing(step.at)) return;
    is_fine_ = is_fine_ || step.at != std::floor(step.at);
    const bool is_evaluated = !is_missing(step.val_loss);
    // An evaluation is in the gap before its step or in the one behind it. If all gaps may have one, every third
    // counts.
    skipped_ = (is_evaluated || was_evaluated_) && skipped_ < 2 ? skipped_ + 1 : 0;
    if (skipped_ == 0 && step.at >= at_before_) take(step.at - at_before_, step.step - step_before_);
    at_before_ = step.at;
    step_before_ = step.step;
    was_evaluated_ = is_evaluated;
  }

  void complete(Summary& summary) const {
    if (summary.backwards_step == 0) summary.backwards_step = backwards_step_;
    // A clock of whole seconds is off by one in each block.
    const double ms = wall_ms_.quantile(0.5);
    if (is_fine_ || ms * gaps_in_block > 8000) summary.wall_ms_median = ms;
  }

 private:
  static constexpr int gaps_in_block = 8;

  void take(double gap_s, std::int64_t steps) {
    block_s_ += gap_s;
    block_steps_ += steps;
    if (++gaps_ < gaps_in_block) return;
    const double ms = 1000 * block_s_ / static_cast<double>(block_steps_);
    if (ms > 0 && std::isfinite(ms)) wall_ms_.add(ms);
    block_s_ = 0;
    block_steps_ = gaps_ = 0;
  }

  double at_before_ = missing;
  std::int64_t step_before_ = 0;
  std::int64_t backwards_step_ = 0;  // the first one that ended before the step before it; 0: none
  bool is_fine_ = false;             // the clock has fractions of a second
  bool was_evaluated_ = false;       // the step before
  int skipped_ = 0;                  // gaps in a row
  std::int64_t gaps_ = 0;            // of the block
  std::int64_t block_steps_ = 0;
  double block_s_ = 0;
  FineHistogram wall_ms_;
};

}  // namespace stepladder
