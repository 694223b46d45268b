// Merges the lines that describe the same step, and holds the last steps back while lines may still add to them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/importers/logs/printed_step.h"

namespace stepladder {

class StepMerger {
 public:
  // A known step takes the line's further values; a line that contradicts it is a newer attempt, and both are kept.
  enum class Added { new_step, known_step, too_late };
  Added add(const PrintedStep& printed);

  // Adds a validation loss without a step number to the last step. If one is printed before step 0, all are of the step
  // below them; before step 1, it is of the untrained model: step 0. A test set's loss (`tested`) counts only if there
  // is no validation set's. False if the last step was released.
  bool validate(double val_loss, bool tested);
  // The validation loss before the first step is of the untrained model, wherever that step is.
  void validates_untrained() { early_is_untrained_ = true; }

  // The loss of the last step, printed on a line of its own.
  void complete_last(double loss) { held_.back().loss = loss; }
  // The only step so far has this number instead.
  void renumber_first(std::int64_t step);

  bool val_losses_lead() const { return val_losses_lead_; }
  // The input ends: a loss that waits for the next step is of the last one. Returns it if that one has another.
  double finish();

  bool lacks_loss() const { return !held_.empty() && is_missing(held_.back().loss); }
  std::int64_t first_step() const { return first_step_; }
  std::int64_t last_step() const { return last_step_; }
  std::int64_t steps() const { return count_; }
  std::int64_t restarts() const { return restarts_; }  // how often an earlier step was printed again with other values

  // The steps that were not released, in the order of the log.
  std::span<PrintedStep> held() { return held_; }
  // Forgets the first `count` of them, which can no longer change.
  void release(std::size_t count);

  // The number of steps that are held back, since a validation loss may be printed some lines late.
  static constexpr std::size_t held_back = 64;

 private:
  PrintedStep* find(std::int64_t step);
  PrintedStep* find_replayed(const PrintedStep& printed);

  std::vector<PrintedStep> held_;
  std::size_t attempt_ = 0;  // where in held_ the steps last restarted from the first
  std::size_t replay_ = 0;   // the next step of held_ that a reprinted block would repeat
  bool released_ = false;
  std::int64_t count_ = 0;
  std::int64_t restarts_ = 0;
  std::int64_t first_step_ = 0;
  std::int64_t last_step_ = 0;
  double early_val_loss_ = missing;  // printed before the step that it belongs to
  bool early_is_untrained_ = false;  // it is of step 0
  bool val_losses_lead_ = false;     // one was printed before step 0
  bool validated_ = false;           // a validation set's loss was printed
};

}  // namespace stepladder
