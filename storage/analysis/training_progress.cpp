// The one sum of a run's tokens and times. A record that only evaluates before the first step is no step.
#include "storage/analysis/training_progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepladder {

void TrainingProgress::add(const StepRecord& record) {
  const std::int64_t step = record.step;
  const bool is_first = !std::exchange(begun_, true);
  const std::int64_t before = std::exchange(last_step_, step);
  if (is_first && is_evaluation(record)) return;
  if (const std::int64_t known = record.tokens > 0 ? record.tokens : tokens_per_step_; known > 0) {
    const std::int64_t trained = std::max<std::int64_t>(1, step - std::exchange(last_counted_, step));
    if (!is_missing(tokens_)) tokens_ += static_cast<double>(known) * static_cast<double>(trained);
  } else if (!is_evaluation(record)) {
    tokens_ = missing;
  }

  if (record.dt_ms > 0 && std::isfinite(record.dt_ms)) last_dt_ms_ = record.dt_ms;
  if (step <= clock_starts_after_ || is_missing(last_dt_ms_)) return;
  const std::int64_t timed = is_first ? 1 : std::max<std::int64_t>(1, step - std::max(before, clock_starts_after_));
  milliseconds_ = (is_missing(milliseconds_) ? 0 : milliseconds_) + last_dt_ms_ * static_cast<double>(timed);
}

void TrainingProgress::add(const Series& steps, std::size_t i) {
  add({.step = steps.step[i],
       .loss = steps.loss[i],
       .val_loss = steps.val_loss[i],
       .dt_ms = steps.dt_ms[i],
       .tokens = steps.tokens[i]});
}

}  // namespace stepladder
