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
    std::cerr << "\nstepladder: Ctrl-Z cannot stop a run of several processes, since they would lose contact. "
                 "Use `stepladder pause`\n";
    return;
  }
  if (!holds_) hold();
  if (session_.is_idle_or_paused()) stop_here();
}

void Suspension::hold() {
  std::cerr << "\nstepladder: suspending after this step, to keep timings clean\n";
  for (const RunId run : runs_) {
    if (session_.paused(run)) continue;
    session_.pause(run, true);
    held_.push_back(run);
  }
  holds_ = true;
}

void Suspension::stop_here() {
  session_.flush(std::chrono::seconds(2));  // what isn't stored by then waits in this process
  // The system's own stop, as shells expect it. The system ignores it if nobody could continue the process.
  std::signal(SIGTSTP, SIG_DFL);
  std::raise(SIGTSTP);
  std::signal(SIGTSTP, note_suspend);  // the process continues here
  asked = holds_ = false;
  for (const RunId run : std::exchange(held_, {})) session_.pause(run, false);
}

}  // namespace stepladder
