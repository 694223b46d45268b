// The tokens and the time that a run has trained with up to each of its steps. Axes, targets and figures all take them
// from here, so that they agree. Pure.
#pragma once

#include <cstdint>

#include "storage/records.h"

namespace stepladder {

// Tokens: those of each step, also of steps that a log which prints every hundredth doesn't name.
// Time: that of the steps alone. A step without a time counts as the last one before it that has one. It begins where
// the program's own clock was set to zero behind a warm-up (PrintedUnits::clock_starts_after), as the program's records
// and its own curves do; before that it is missing.
class TrainingProgress {
 public:
  explicit TrainingProgress(const Run& run)
      : tokens_per_step_(run.tokens_per_step), clock_starts_after_(run.printed.clock_starts_after) {}

  // Takes the steps in their order.
  void add(const StepRecord& step);
  void add(const Series& steps, std::size_t i);

  // Up to and including the last step; missing if unknown.
  double tokens() const { return tokens_; }
  double seconds() const { return milliseconds_ / 1000; }

 private:
  std::int64_t tokens_per_step_;
  std::int64_t clock_starts_after_;
  std::int64_t last_step_ = 0;
  std::int64_t last_counted_ = 0;  // of the tokens
  bool begun_ = false;
  double last_dt_ms_ = missing;
  double milliseconds_ = missing;
  double tokens_ = 0;
};

// Whether a record is only an evaluation: before the first step it trained nothing.
inline bool is_evaluation(const StepRecord& step) {
  return is_missing(step.loss) && !(step.dt_ms > 0) && !is_missing(step.val_loss);
}

}  // namespace stepladder
