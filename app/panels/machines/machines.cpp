// Machines: the ssh hosts and clusters that runs are launched on, what they have now, and what they run.
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/machines/machine_commands.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/machines/adoption.h"
#include "app/machines/far_kind.h"
#include "app/machines/machine_check.h"
#include "app/panels/machines/machine_form.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct State {
  MachineForm form;
  MachineAlias opened;    // whose checklist is shown, though nothing is wrong
  MachineAlias removing;  // asks whether to remove it
  std::string adopting;   // shows what it would do, and asks
};

struct Word {
  std::string text;
  Tone tone;
};

// Whether it answers, but can't train yet.
bool needs_setup(const MachineStatus& status) {
  return status.report.is_reachable && status.report.version.empty();
}

bool is_ready(const MachineStatus& status) {
  return status.report.is_reachable && !needs_setup(status);
}

constexpr const char* launch_label = "Launch there";

Word link_word(const MachineStatus& status) {
  switch (status.link) {
    case MachineStatus::Link::up:
      return needs_setup(status) ? Word{"needs set-up", Tone::warning} : Word{"reachable", Tone::good};
    case MachineStatus::Link::connecting:
      return {"connecting", Tone::neutral};
    case MachineStatus::Link::lost:
      return {"unreachable since " + local_time_text(status.lost_at), Tone::warning};
    case MachineStatus::Link::idle:
      break;
  }
  return is_missing(status.lost_at) ? Word{"not tried yet", Tone::neutral}
                                    : Word{"unreachable since " + local_time_text(status.lost_at), Tone::warning};
}

Word check_word(MachineCheck::Result result) {
  switch (result) {
    case MachineCheck::Result::good:
      return {"ok", Tone::good};
    case MachineCheck::Result::warning:
      return {"warning", Tone::warning};
    case MachineCheck::Result::bad:
      return {"failed", Tone::bad};
    case MachineCheck::Result::not_tried:
      break;
  }
  return {"not tried", Tone::neutral};
}

void draw_gpus(const std::vector<MachineGpu>& gpus) {
  constexpr std::size_t most = 16;
  const float name = px(240), bar = px(120);
  for (std::size_t i = 0; i < std::min(gpus.size(), most); ++i) {
    const MachineGpu& gpu = gpus[i];
    ImGui::AlignTextToFramePadding();
    const float left = ImGui::GetCursorPosX();
    text_cut(std::to_string(i) + "  " + gpu.name, name - px(12), palette().text, fonts().regular, text_size);
    ImGui::SameLine(left + name);
    const ImVec2 corner = ImGui::GetCursorPos();
    ImGui::SetCursorPosY(corner.y + (ImGui::GetFrameHeight() - px(6)) / 2);
    progress_bar(is_missing(gpu.load) ? 0 : gpu.load, bar);
    ImGui::SetCursorPos(corner);
    ImGui::Dummy(ImVec2(bar, ImGui::GetFrameHeight()));
    ImGui::SameLine(left + name + bar + px(12));
    ImGui::AlignTextToFramePadding();
    text_quiet((is_missing(gpu.load) ? "load not known" : percent_text(gpu.load) + " busy") +
               (gpu.all_memory_bytes > 0
                    ? ", " + bytes_text(double(gpu.memory_bytes)) + " of " + bytes_text(double(gpu.all_memory_bytes))
                    : ""));
  }
  if (gpus.size() > most) text_quiet("and " + std::to_string(gpus.size() - most) + " more");
}

std::string facts_of(const MachineStatus& status) {
  const MachineReport& report = status.report;
  std::string text = report.host + ", " + report.platform;
  if (report.cores > 0)
    text += "; load " + (is_missing(report.load) ? "-" : compact(report.load)) + " on " + plural(report.cores, "core");
  if (report.memory_bytes > 0)
    text += "; " + bytes_text(double(report.free_memory_bytes)) + " of " + bytes_text(double(report.memory_bytes)) +
            " memory free";
  if (report.free_disk_bytes > 0) text += "; " + bytes_text(double(report.free_disk_bytes)) + " disk free";
  return text;
}

void column_text(const std::string& text, bool is_quiet = false) {
  ImGui::TableNextColumn();
  is_quiet ? text_quiet(text) : ImGui::TextUnformatted(text.c_str());
}

std::string count_text(std::int64_t count) {
  return count < 0 ? "-" : grouped(count);
}

// The cluster's partitions, and the jobs of all its users.
void draw_queue(const MachineReport& report) {
  constexpr std::size_t most = 12;
  if (const std::string queue = queue_text(report); !queue.empty()) text_quiet("Queue: " + queue);
  if (report.partitions.empty()) return;
  if (!ImGui::BeginTable("##queue", 6, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("partition", ImGuiTableColumnFlags_WidthFixed, px(150));
  for (const char* const name : {"nodes", "GPUs", "running", "waiting", "limit"})
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthFixed, px(name == std::string_view("nodes") ? 170 : 90));
  for (const char* const title : {"Partition", "Nodes", "GPUs", "Running", "Waiting", "Time limit"})
    column_text(title, true);
  for (std::size_t i = 0; i < std::min(report.partitions.size(), most); ++i) {
    const MachinePartition& each = report.partitions[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_cut(each.name + (each.is_default ? " (default)" : ""), px(150), palette().text, fonts().regular, text_size);
    column_text(grouped(each.idle_nodes) + " idle, " + grouped(each.allocated_nodes) + " busy of " +
                grouped(each.nodes));
    column_text(each.gpus > 0 ? grouped(each.gpus) : "-");
    column_text(count_text(each.running_jobs));
    column_text(count_text(each.pending_jobs));
    column_text(each.time_limit);
  }
  ImGui::EndTable();
  if (report.partitions.size() > most) text_quiet("and " + std::to_string(report.partitions.size() - most) + " more");
}

void draw_checks(const std::vector<MachineCheck>& checks) {
  if (!ImGui::BeginTable("##checks", 3, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("check", ImGuiTableColumnFlags_WidthFixed, px(96));
  ImGui::TableSetupColumn("result", ImGuiTableColumnFlags_WidthFixed, px(84));
  ImGui::TableSetupColumn("text", ImGuiTableColumnFlags_WidthStretch);
  for (const MachineCheck& check : checks) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(check.name.c_str());
    ImGui::TableNextColumn();
    const Word word = check_word(check.result);
    pill(word.text, word.tone);
    ImGui::TableNextColumn();
    text_quiet_wrapped(check.text);
  }
  ImGui::EndTable();
}

void draw_work(const MachineStatus& status, const Workspace& workspace, Commands& commands) {
  for (const FarWork& work : status.work) {
    ImGui::PushID(work.uid.c_str());
    pill_beside_buttons(work.phase, work.phase == "running" ? Tone::good : Tone::neutral);
    ImGui::AlignTextToFramePadding();
    text_cut(work.name + (work.job.empty() ? "" : ", job " + work.job), px(320), palette().text, fonts().regular,
             text_size);
    if (work.runs.empty()) {
      ImGui::SameLine();
      text_quiet(has_runs_here(work.kind) ? "no step yet" : text_without_runs(work.kind));
    }
    std::size_t waiting = 0;
    for (const RunId id : work.runs) {
      const RunEntry* run = workspace.find(id);
      if (!run || run->run.status != RunStatus::running) {
        waiting += run && run->run.status == RunStatus::queued;
        continue;
      }
      ImGui::SameLine();
      if (quiet_button(("run " + std::to_string(id)).c_str(), "machines.run." + std::to_string(id)))
        commands.push_back(OpenRun{id});
      ImGui::SameLine();
      const std::int64_t last = run->series().empty() ? run->summary.last_step : run->series().step.back();
      text_quiet("step " + grouped(last) +
                 (is_missing(run->last_step_at)
                      ? ""
                      : ", " + duration_text(std::max(0.0, unix_now() - run->last_step_at)) + " ago"));
    }
    if (waiting > 0) {
      ImGui::SameLine();
      text_quiet(plural(waiting, "run") + " queued");
    }
    ImGui::PopID();
  }
}

void draw_buttons(State& state, const MachineStatus& status, Commands& commands) {
  const MachineAlias& alias = status.machine.alias;
  if (is_ready(status)) {
    if (quiet_button(launch_label, "machines.launch." + alias.text())) commands.push_back(ShowPanel{"launch"});
    ImGui::SameLine();
  }
  if (quiet_button("Test", "machines.test." + alias.text())) {
    commands.push_back(AskMachine{alias});
    state.opened = state.opened == alias ? MachineAlias() : alias;
  }
  ImGui::SameLine();
  if (quiet_button("Edit", "machines.edit." + alias.text())) state.form.open(status.machine);
  ImGui::SameLine();
  if (state.removing == alias) {
    if (quiet_button("Really remove", "machines.really." + alias.text())) {
      commands.push_back(RemoveMachine{alias});
      state.removing = {};
    }
  } else if (quiet_button("Remove")) {
    state.removing = alias;
  }
  mark("machines.remove." + alias.text());
}

void draw_machine(State& state, const MachineStatus& status, const Workspace& workspace, Commands& commands) {
  ImGui::PushID(status.machine.alias.text().c_str());
  begin_tall_card("##machine");
  float buttons = 0;
  for (const char* label : {"Test", "Edit", state.removing == status.machine.alias ? "Really remove" : "Remove"})
    buttons += button_width(label);
  buttons += 2 * ImGui::GetStyle().ItemSpacing.x;
  if (is_ready(status)) buttons += button_width(launch_label) + ImGui::GetStyle().ItemSpacing.x;
  const float right = ImGui::GetContentRegionMax().x;
  const Word word = link_word(status);
  ImGui::AlignTextToFramePadding();
  text_cut(status.machine.alias.text(), right - buttons - pill_size(word.text).x - px(48), palette().text,
           fonts().semibold, text_size);
  same_line(12);
  pill_beside_buttons(word.text, word.tone);
  ImGui::SameLine(right - buttons);
  draw_buttons(state, status, commands);
  if (!status.why.empty()) text_sentence(status.why, Tone::warning);
  if (status.report.is_reachable) {
    text_quiet_wrapped(facts_of(status));
    if (status.report.gpus.empty())
      text_quiet("No GPU: " + status.report.no_gpu_because);
    else
      draw_gpus(status.report.gpus);
    if (status.report.has_slurm) {
      text_quiet_wrapped(status.report.slurm_version +
                         (status.machine.uses_slurm ? ": what is launched here becomes a job" : ""));
      draw_queue(status.report);
    }
    if (status.report.logout_kills.value_or(false) && !status.machine.uses_slurm)
      text_sentence("Runs there end with the connection: `loginctl enable-linger` there prevents it", Tone::warning);
    if (needs_setup(status)) {
      const std::string& name = status.machine.alias.text();
      text_sentence("Stepladder isn't installed there yet, and ladders need it. The set-up copies it there.");
      if (quiet_button("Copy the set-up command", "machines.setup." + name))
        commands.push_back(CopyText{"stepladder machines setup " + name + "\n", "the command"});
    }
  } else if (status.is_asking || status.link == MachineStatus::Link::connecting) {
    text_quiet("Connecting...");
  }
  // A machine that can't be reached shows the reason already.
  const bool is_bad = status.report.is_reachable && status.link == MachineStatus::Link::up &&
                      std::ranges::any_of(status.checks, [](const MachineCheck& check) {
                        return check.result == MachineCheck::Result::bad;
                      });
  if (is_bad || state.opened == status.machine.alias) draw_checks(status.checks);
  draw_work(status, workspace, commands);
  end_card();
  ImGui::PopID();
  gap(12);
}

// Draws a machine that came with the project's file: history until the user adopts it.
void draw_machine_in_file(State& state, const MachineInFile& machine, Commands& commands) {
  ImGui::PushID(machine.alias.c_str());
  begin_tall_card("##in file");
  const bool is_asking = state.adopting == machine.alias;
  const auto width = [](const char* label) { return button_width(label); };
  const float buttons =
      is_asking ? width("Really adopt") + ImGui::GetStyle().ItemSpacing.x + width("Cancel") : width("Adopt...");
  const float right = ImGui::GetContentRegionMax().x;
  const char* const word = "from the file";
  ImGui::AlignTextToFramePadding();
  text_cut(harmless(machine.alias), right - buttons - pill_size(word).x - px(48), palette().text, fonts().semibold,
           text_size);
  same_line(12);
  pill_beside_buttons(word, Tone::warning);
  ImGui::SameLine(right - buttons);
  if (is_asking) {
    if (quiet_button("Really adopt", "machines.adopt.really")) {
      commands.push_back(AdoptMachine{machine});
      state.adopting.clear();
    }
    ImGui::SameLine();
    if (quiet_button("Cancel")) state.adopting.clear();
  } else if (quiet_button("Adopt...")) {
    state.adopting = machine.alias;
  }
  mark("machines.adopt." + harmless(machine.alias));
  text_quiet_wrapped("It came with the project's file, so nothing connects to it." +
                     std::string(is_asking ? " If you adopt it:" : ""));
  if (is_asking)
    for (const std::string& sentence : adoption_text(machine)) text_sentence(sentence);
  end_card();
  ImGui::PopID();
  gap(12);
}

// The one that the window is on, in the words of the others.
void draw_this_machine(const Workspace& workspace, Commands& commands) {
  begin_tall_card("##here");
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::AlignTextToFramePadding();
  text_strong("This machine");
  same_line(12);
  pill_beside_buttons("here", Tone::good);
  ImGui::SameLine(right - button_width("Launch here"));
  if (quiet_button("Launch here", "machines.launch")) commands.push_back(ShowPanel{"launch"});
  if (const std::optional<DeviceReport>& device = workspace.device) {
    Run on_cpu{.device = "cpu"};
    on_cpu.hardware = device->hardware(on_cpu.device);
    std::string facts = hardware_text(on_cpu);
    if (device->memory_bytes > 0) facts += "; " + bytes_text(double(device->memory_bytes)) + " memory";
    text_quiet_wrapped(facts);
    if (device->gpus.empty()) text_quiet("No GPU" + (device->cuda_note.empty() ? "" : ": " + device->cuda_note));
    for (const Gpu& gpu : device->gpus) text_quiet(gpu.name);
  } else {
    text_quiet("Detecting hardware...");
  }
  if (!workspace.device_problem.empty()) text_sentence(capitalised(workspace.device_problem) + ".", Tone::warning);
  end_card();
  gap(12);
}

void draw_no_machine() {
  begin_tall_card("##none");
  text_strong("No other machines yet");
  spacing(2);
  text_sentence("A machine is a host, or a Slurm cluster's login node, that you reach with ssh.");
  const float left = ImGui::GetCursorPosX();
  int number = 0;
  for (const char* step :
       {"Press Add machine, and enter its name in your ~/.ssh/config.",
        "Press Test. It checks what runs need there, and says how to get what is missing.",
        "Choose it in Launch. The runs there are runs of this project, and its GPUs and queue appear here."}) {
    text_sentence(std::to_string(++number) + ".");
    ImGui::SameLine(left + px(18));
    text_sentence(step);
  }
  mark("machines.none");
  end_card();
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const bool can_change = workspace.read_only.empty();
  if (view_head("Machines", "Hosts and clusters that you launch runs on, through your own ssh",
                {.label = "Add machine",
                 .anchor = "machines.add",
                 .is_enabled = can_change && !state.form.is_open(),
                 .tooltip = can_change ? "" : "The project is open for reading only"}))
    state.form.open({});
  gap(10);
  if (state.form.is_open()) {
    state.form.draw(workspace, commands);
    gap(12);
  }
  draw_this_machine(workspace, commands);
  if (workspace.machines->list.empty() && workspace.machines->in_file.empty()) {
    if (!state.form.is_open()) draw_no_machine();
    return;
  }
  ImGui::BeginChild("##machines", ImVec2(0, 0));
  for (const MachineStatus& status : workspace.machines->list) draw_machine(state, status, workspace, commands);
  for (const MachineInFile& machine : workspace.machines->in_file) draw_machine_in_file(state, machine, commands);
  ImGui::EndChild();
}

}  // namespace

Panel panels::machines() {
  const auto state = std::make_shared<State>();
  return {.id = "machines", .title = "Machines", .draw = [state](const Workspace& workspace, Commands& commands) {
            draw(*state, workspace, commands);
          }};
}

}  // namespace stepladder
