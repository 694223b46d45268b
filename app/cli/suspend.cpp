#include "app/cli/suspend.h"

#include <atomic>
#include <csignal>
#include <iostream>
#include <utility>

namespace stepladder {
namespace {

std::atomic<bool> asked{false};

void note_suspend(int) {
  asked = true;
}

}  // namespace

Suspension::Suspension(Session& session, std::vector<RunId> runs, bool several_processes)
    : session_(session), runs_(std::move(runs)), several_processes_(several_processes) {
  asked = false;
  std::signal(SIGTSTP, note_suspend);
}

Suspension::~Suspension() {
  std::signal(SIGTSTP, SIG_DFL);
}

void Suspension::look() {
  if (!asked) return;
  if (several_processes_) {
    asked = false;
    std::cerr << "\nstepladder: Ctrl-Z does not stop a run of several processes: they would give each other up. "
                 "`stepladder pause` holds it\n";
    return;
  }
  if (!holds_) hold();
  if (session_.holding()) stop_here();
}

void Suspension::hold() {
  std::cerr << "\nstepladder: stops after this step, so that the time is no step's\n";
  for (const RunId run : runs_) {
    if (session_.paused(run)) continue;
    session_.pause(run, true);
    held_.push_back(run);
  }
  holds_ = true;
}

void Suspension::stop_here() {
  session_.flush();
  // The system's own stop, so that a shell sees what it expects and a process without one is not left lying.
  std::signal(SIGTSTP, SIG_DFL);
  std::raise(SIGTSTP);
  std::signal(SIGTSTP, note_suspend);  // here it goes on
  asked = holds_ = false;
  for (const RunId run : std::exchange(held_, {})) session_.pause(run, false);
}

}  // namespace stepladder
