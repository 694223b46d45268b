// Ctrl-Z in the terminal (SIGTSTP). A training that is stopped in the middle of a step would count the time until `fg`
// as that step's dt; so the runs are held at their next step first, as by `stepladder pause`, and the process stops
// then.
#pragma once

#include <vector>

#include "app/session.h"

namespace stepladder {

// While one lives, Ctrl-Z waits for the step's end. Lives on the thread that made it; one at a time.
class Suspension {
 public:
  // `runs` are those that may be under way. A run of several processes is not stopped, since the others would give up
  // waiting for this one: then Ctrl-Z only says what to do instead.
  Suspension(Session& session, std::vector<RunId> runs, bool several_processes);
  ~Suspension();  // gives Ctrl-Z back to the system
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;

  // To be called again and again. Where the user has asked for it and no step is under way, it writes what has come,
  // stops the whole process, and returns when that goes on.
  void look();

 private:
  void hold();
  void stop_here();

  Session& session_;
  const std::vector<RunId> runs_;
  const bool several_processes_;
  bool holds_ = false;
  std::vector<RunId> held_;  // by us: those that somebody else has paused stay so
};

}  // namespace stepladder
