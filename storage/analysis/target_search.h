// Finds the step at which a run reached a loss, piece by piece, so that the run need not be read whole; and what
// several runs needed.
#pragma once

#include <span>
#include <vector>

#include "storage/analysis/compare.h"
#include "storage/analysis/training_progress.h"
#include "storage/records.h"

namespace stepladder {

// reach() (storage/analysis/compare.h) is one of these over a whole series. `validated`: the run has validation losses,
// which are used then.
class TargetSearch {
 public:
  TargetSearch(const Run& run, double target_loss, bool validated)
      : progress_(run), target_loss_(target_loss), reached_{.by_validation = validated} {}

  // Takes the steps that follow those of the last call; ignores them once the target is found (not only once).
  void add(const Series& steps);

  bool found() const { return reached_.step != 0 && !reached_.once; }
  const TargetReached& reached() const { return reached_; }

 private:
  double loss_at(const Series& steps, std::size_t i);

  TrainingProgress progress_;
  const double target_loss_;
  std::vector<double> last_;  // training losses, for their median
  TargetReached reached_;
};

// The cost at which several runs, such as repeats, reached a loss: the medians over those that reached it.
struct TargetOfRuns {
  int runs = 0;
  int reached = 0;
  int once = 0;            // of these, by their last evaluation alone
  double steps = missing;  // missing if none reached it
  double seconds = missing;
  double tokens = missing;
  int by_validation = 0;  // runs that were judged by their validation loss
};
TargetOfRuns target_of(std::span<const TargetReached> runs);

}  // namespace stepladder
