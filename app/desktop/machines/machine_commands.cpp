// The window's side of other machines: what their thread has found out, and the commands about them.
#include "app/desktop/machines/machine_commands.h"

#include <utility>

#include "app/desktop/desktop_state.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/text/format.h"

namespace stepladder {

void commands::execute(DesktopState& desktop, const AddMachine& add) {
  if (desktop.machines) desktop.machines->add(add.machine);
}

void commands::execute(DesktopState& desktop, const RemoveMachine& remove) {
  if (desktop.machines) desktop.machines->remove(remove.alias);
}

void commands::execute(DesktopState& desktop, const AdoptMachine& adopt) {
  if (desktop.machines) desktop.machines->adopt(adopt.shown);
}

void commands::execute(DesktopState& desktop, const AskMachine& ask) {
  if (desktop.machines) desktop.machines->ask_again(ask.alias);
}

void take_machine_news(DesktopState& desktop) {
  if (!desktop.machines) return;
  if (desktop.panels.is_open("machines")) desktop.machines->look();
  if (auto questions = desktop.machines->take_questions())
    desktop.workspace.machines->ssh_questions = std::move(*questions);
  if (auto statuses = desktop.machines->take_statuses()) desktop.workspace.machines->list = std::move(*statuses);
  if (auto machines = desktop.machines->take_machines_in_file())
    desktop.workspace.machines->in_file = std::move(*machines);
  for (const MachineWatch::Message& message : desktop.machines->take_messages())
    message.is_error ? desktop.messages.show_error(message.text) : desktop.messages.notice(message.text);
}

bool signal_machine(DesktopState& desktop, RunId run, const char* signal) {
  const auto place = desktop.store.machines().place_of(run);
  if (!place || !desktop.machines) return false;
  if (!desktop.store.machines().far_run_of(run)) {
    desktop.messages.show_error("The project's file says that run " + std::to_string(run) + " is at " +
                                harmless(place->alias) +
                                ", but it wasn't started from here. Adopt the machine in Machines first.");
    return true;
  }
  desktop.machines->signal(run, signal);
  desktop.messages.notice("Asked " + place->alias + " to " + signal + " " + asked_of(desktop.store, *place));
  return true;
}

}  // namespace stepladder
