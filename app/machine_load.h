// How busy other programs keep this machine now, in words: for `doctor` and for Launch, before a run starts.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engine/others_watch.h"
#include "storage/records.h"

namespace stepladder {

// One thread.
class MachineLoad {
 public:
  // Looks if the last look was at least half a second ago; returns whether it did. A look at a quiet machine costs some
  // tens of microseconds, at a busy one milliseconds, since it finds out who it is.
  bool look();
  // Waits until it can look, then does.
  void wait_and_look();

  const Contention& others() const { return others_; }  // before the first look: unknown
  const std::vector<BusyProcess>& busiest() const { return busiest_; }
  bool is_known() const { return !is_missing(others_.other_cores); }
  bool would_disturb(int needed_cores) const;  // a run that starts now

  // "Other programs use 1.3 of 2 cores (cc1plus 0.9, ld 0.3)", or that nobody can tell.
  std::string text() const;

 private:
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
  OthersWatch watch_{OthersWatch::Run::whole_process};
  BusyProcesses processes_;
  Contention others_;
  std::vector<BusyProcess> busiest_;
};

}  // namespace stepladder
