// Waits until other programs leave a run the cores that it needs.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// Whether others left a run what it needs, on average over the last looks.
class Quiet {
 public:
  static constexpr std::size_t looks = 4;  // half a second each

  // Adds what others used since the previous look. Returns whether the machine is quiet; never before `looks` of them.
  bool after(const Contention& look);
  Contention average() const;

 private:
  std::deque<Contention> last_;
};

// Returns true once the machine is quiet, `patience` is over, or nobody can tell (OthersWatch); false if the run has to
// stop. Waits longer while the run is paused. `say` gets a sentence when it begins to wait, every half a minute and at
// the end; none if the machine is quiet at once. The engine's thread.
bool wait_until_quiet(int needed_cores, std::chrono::seconds patience, RunControl& control,
                      const std::function<void(const std::string&)>& say);

}  // namespace stepladder
