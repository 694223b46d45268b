// Draws the form for a machine. Each text must pass the rule of its type (MachineAlias, MachineFolder, SlurmWord)
// before the machine is added, since these texts become parts of commands.
#include "app/panels/machines/machine_form.h"

#include <imgui.h>

#include <algorithm>
#include <utility>

#include "app/desktop/frames/frames.h"
#include "app/desktop/machines/machine_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/machines/link.h"
#include "app/panels/launch/form.h"

namespace stepladder {
namespace {

// ImGui aligns a group's first line with the line before it, so that all begin like a frame's text.
void begin_field(const char* label) {
  ImGui::BeginGroup();
  ImGui::AlignTextToFramePadding();
  text_quiet(label);
}

// Returns whether Enter was pressed in it.
bool field(const char* label, const char* id, const char* hint, std::string& text, float width) {
  begin_field(label);
  ImGui::SetNextItemWidth(width);
  text_input(id, hint, text);
  const bool is_entered = ImGui::IsItemDeactivated() && (ImGui::IsKeyPressed(ImGuiKey_Enter, false) ||
                                                         ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false));
  mark(std::string("machines.form") + (id + 2));
  ImGui::EndGroup();
  return is_entered;
}

void count(const char* label, const char* id, int& value) {
  begin_field(label);
  ImGui::SetNextItemWidth(px(96));
  if (ImGui::InputInt(id, &value)) value = std::clamp(value, 0, 4096);
  ImGui::EndGroup();
}

}  // namespace

void MachineForm::open(const Machine& machine) {
  before_ = machine;
  is_open_ = wants_focus_ = true;
  is_new_ = machine.alias.empty();
  alias_ = machine.alias.text();
  folder_ = machine.folder.text();
  program_ = machine.program.text();
  partition_ = machine.slurm.partition.text();
  account_ = machine.slurm.account.text();
  time_ = machine.slurm.time.text();
  gpus_ = static_cast<int>(machine.slurm.gpus);
  nodes_ = static_cast<int>(machine.slurm.nodes);
  is_local_ = machine.is_local;
  uses_slurm_ = machine.uses_slurm;
}

std::string MachineForm::problem(const Workspace& workspace) const {
  if (alias_.empty()) return "Enter the host's name in ~/.ssh/config, or user@host.";
  std::string why = MachineAlias::refused(alias_);
  if (why.empty()) why = MachineFolder::refused(folder_);
  if (why.empty()) why = MachineProgram::refused(program_);
  for (const std::string& word : {partition_, account_, time_})
    if (why.empty()) why = SlurmWord::refused(word);
  if (!why.empty()) return why;
  const bool is_known = std::ranges::any_of(
      workspace.machines->list, [this](const MachineStatus& status) { return status.machine.alias.text() == alias_; });
  return is_new_ && is_known ? alias_ + " is in the list already." : "";
}

Machine MachineForm::machine() const {
  Machine machine = before_;  // problem() has found nothing, so each text is allowed
  machine.alias = MachineAlias::from(alias_).value_or(machine.alias);
  machine.is_local = is_local_;
  machine.folder = MachineFolder::from(folder_).value_or(machine.folder);
  machine.program = MachineProgram::from(program_).value_or(machine.program);
  machine.uses_slurm = uses_slurm_;
  machine.slurm.partition = SlurmWord::from(partition_).value_or(machine.slurm.partition);
  machine.slurm.account = SlurmWord::from(account_).value_or(machine.slurm.account);
  machine.slurm.time = SlurmWord::from(time_).value_or(machine.slurm.time);
  machine.slurm.gpus = gpus_;
  machine.slurm.nodes = nodes_;
  return machine;
}

void MachineForm::draw(const Workspace& workspace, Commands& commands) {
  begin_tall_card("##form");
  text_strong(is_new_ ? "New machine" : alias_);
  bool is_entered = false;
  if (is_new_) {
    if (std::exchange(wants_focus_, false)) ImGui::SetKeyboardFocusHere();
    is_entered = field("Host", "##.alias", "as after `ssh`", alias_, px(200));
    same_line(12);
  }
  is_entered |= field("Folder there", "##.folder", "~/.stepladder", folder_, px(220));
  same_line(12);
  is_entered |= field("Stepladder there", "##.program", "as its shell finds it", program_, px(220));
  ImGui::Checkbox("This machine itself, without ssh", &is_local_);
  same_line(24);
  ImGui::Checkbox("Slurm", &uses_slurm_);
  mark("machines.form.slurm");
  if (uses_slurm_) {
    is_entered |= field("Partition", "##.partition", "the cluster's default", partition_, px(160));
    same_line(12);
    is_entered |= field("Account", "##.account", "yours", account_, px(140));
    same_line(12);
    is_entered |= field("Time limit", "##.time", "02:00:00", time_, px(110));
    same_line(12);
    count("GPUs a node", "##gpus", gpus_);
    same_line(12);
    count("Nodes", "##nodes", nodes_);
  }
  gap(8);
  const std::string why = problem(workspace);
  const bool is_pressed = primary_button(is_new_ ? "Add" : "Save", why.empty(), "machines.form.save");
  if (is_pressed || (is_entered && why.empty())) {
    commands.push_back(AddMachine{machine()});
    is_open_ = false;
  }
  ImGui::SameLine();
  if (quiet_button("Cancel")) is_open_ = false;
  if (!why.empty()) {
    same_line(12);
    ImGui::AlignTextToFramePadding();
    text_toned(why, alias_.empty() ? Tone::neutral : Tone::warning);
  }
  end_card();
}

}  // namespace stepladder
