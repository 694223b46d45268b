// The window's side of other machines: what their thread has found out, and the commands about them.
#include <algorithm>

#include "app/desktop/desktop_app.h"
#include "app/environment.h"
#include "app/format.h"
#include "app/machines/far_command.h"

namespace stepladder {

void DesktopApp::hear_machines() {
  if (!machines_) return;
  if (is_open("machines")) machines_->look();
  if (auto questions = machines_->take_questions()) workspace_.ssh_questions = std::move(*questions);
  if (auto statuses = machines_->take_statuses()) workspace_.machines = std::move(*statuses);
  if (auto machines = machines_->take_machines_in_file()) workspace_.machines_in_file = std::move(*machines);
  for (const MachineWatch::Message& message : machines_->take_messages())
    message.is_error ? complain(message.text) : notice(message.text);
}

void DesktopApp::draw_ssh_question() {
  const SshQuestion* const question = workspace_.ssh_questions.empty() ? nullptr : &workspace_.ssh_questions.front();
  if (auto answer = ssh_popup_.draw(question); answer && machines_) {
    machines_->answer(answer->id, std::move(answer->text));
    std::erase_if(workspace_.ssh_questions, [&](const SshQuestion& each) { return each.id == answer->id; });
  }
}

bool DesktopApp::asks_machine(RunId run, const char* signal) {
  const auto place = store_.machines().place_of(run);
  if (!place || !machines_) return false;
  if (!store_.machines().far_run_of(run)) {
    complain("The project's file says that run " + std::to_string(run) + " is at " + harmless(place->alias) +
             ", but it wasn't started from here. Adopt the machine in Machines first.");
    return true;
  }
  machines_->signal(run, signal);
  notice("Asked " + place->alias + " to " + signal + " " + asked_of(store_, *place));
  return true;
}

void DesktopApp::execute(const AddMachine& add) {
  if (machines_) machines_->add(add.machine);
}

void DesktopApp::execute(const RemoveMachine& remove) {
  if (machines_) machines_->remove(remove.alias);
}

void DesktopApp::execute(const AdoptMachine& adopt) {
  if (machines_) machines_->adopt(adopt.shown);
}

void DesktopApp::execute(const AskMachine& ask) {
  if (machines_) machines_->ask_again(ask.alias);
}

}  // namespace stepladder
