// Handles Ctrl-Z in the terminal (SIGTSTP). Stopped in the middle of a step, a training would count the time until `fg`
// as that step's dt. So this holds the runs before their next step, as `stepladder pause` does, and then stops the
// process.
#pragma once

#include <vector>

#include "app/session/session.h"

namespace stepladder {

// While one exists, Ctrl-Z waits for the end of the step. Used by the thread that made it; one at a time.
class Suspension {
 public:
  // `runs` may be training. A run of several processes is not stopped, since the others would stop waiting for this
  // one; Ctrl-Z then only prints an alternative.
  Suspension(Session& session, std::vector<RunId> runs, bool several_processes);
  ~Suspension();  // restores the system's Ctrl-Z
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;

  // Call it repeatedly. After Ctrl-Z, once no step is under way, it writes all steps, stops the whole process, and
  // returns when the process continues.
  void look();

 private:
  void hold();
  void stop_here();

  Session& session_;
  const std::vector<RunId> runs_;
  const bool several_processes_;
  bool holds_ = false;
  std::vector<RunId> held_;  // by us; runs that another process paused stay paused
};

}  // namespace stepladder
