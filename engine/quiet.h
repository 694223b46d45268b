// Waits until other programs leave a run the cores that it needs.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// Whether others left a run what it needs, on average over the last samples.
class Quiet {
 public:
  static constexpr std::size_t samples = 4;  // half a second each

  // Adds a sample. Returns whether the machine is quiet; never before `samples` of them.
  bool after(const Contention& sample);
  Contention average() const;

 private:
  std::deque<Contention> last_;
};

// Returns true once the machine is quiet, `patience` is over, the control says to start anyway, or it can't be known
// (OthersWatch); false if the run has
// to stop. Publishes the wait in the control, and waits longer while the run is paused. `say` gets a sentence when it
// begins to wait, every half a minute and at the end; none if the machine is quiet at once. The engine's thread.
bool wait_until_quiet(int needed_cores, std::chrono::seconds patience, RunControl& control,
                      const std::function<void(const std::string&)>& say);

}  // namespace stepladder
