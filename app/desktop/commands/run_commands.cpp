// Stops, pauses, repeats and resumes runs. A run of another process or machine is asked, and answers later.
#include "app/desktop/commands/run_commands.h"

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/desktop_state.h"
#include "app/desktop/machines/machine_commands.h"

namespace stepladder {

void commands::execute(DesktopState& desktop, const StopRun& stop) {
  if (!desktop.can_train()) return;
  if (desktop.workspace.is_ours(stop.run)) return desktop.session->stop(stop.run);
  if (signal_machine(desktop, stop.run, "stop")) return;
  desktop.store.processes().request(stop.run, RunRequest::stop);
  desktop.messages.notice("Asked the process that trains it to stop");
}

void commands::execute(DesktopState& desktop, const StopAll&) {
  if (!desktop.can_train()) return;
  commands::execute(desktop, StopVerification{});
  if (desktop.workspace.trains_here()) return desktop.session->stop_all();
  // The waiting ones first, so that none of them begins.
  for (auto other = desktop.workspace.others().rbegin(); other != desktop.workspace.others().rend(); ++other)
    desktop.store.processes().request(*other, RunRequest::stop);
}

void commands::execute(DesktopState& desktop, const PauseRun& pause) {
  if (!desktop.can_train()) return;
  if (desktop.workspace.is_ours(pause.run)) return desktop.session->pause(pause.run, pause.paused);
  if (signal_machine(desktop, pause.run, pause.paused ? "pause" : "continue"))
    return desktop.workspace.pause(pause.paused);
  desktop.store.processes().request(pause.run, pause.paused ? RunRequest::pause : RunRequest::resume);
  desktop.workspace.pause(pause.paused);
}

void commands::execute(DesktopState& desktop, const MoveInQueue& move) {
  if (!desktop.can_train()) return;
  if (desktop.workspace.is_ours(move.run)) return desktop.session->move_to(move.run, move.place);
  desktop.store.processes().request(move.run, QueuePlace{move.place});
  desktop.messages.notice("Asked the process that trains it to change the order");
}

void commands::execute(DesktopState& desktop, const Repeat& repeat) {
  if (!desktop.can_train()) return;
  desktop.workspace.add_runs(desktop.store, desktop.session->repeat(repeat.runs, repeat.times));
  desktop.panels.show("live");
}

void commands::execute(DesktopState& desktop, const ResumeRun& resume) {
  if (!desktop.can_train()) return;
  const RunEntry* entry = desktop.workspace.find(resume.run);
  if (!entry) return;
  Recipe recipe = recipe_from_json(entry->run.recipe);
  recipe.steps = resume.steps;
  desktop.session->resume(resume.run, recipe);
  desktop.workspace.continue_run(desktop.store, resume.run);
  desktop.panels.show("live");
}

void commands::execute(DesktopState& desktop, const ForkRun& fork) {
  if (!desktop.can_train()) return;
  const RunEntry* entry = desktop.workspace.find(fork.run);
  if (!entry) return;
  RunSpec asked{.base = recipe_from_json(entry->run.recipe), .fork_of = fork.run, .fork_step = fork.step};
  if (fork.step >= asked.base.steps) asked.base.steps = fork.step + asked.base.steps;
  desktop.workspace.add_runs(desktop.store, {desktop.session->launch_run(asked, desktop.device())});
  desktop.panels.show("live");
}

}  // namespace stepladder
