#include "app/desktop/run_widgets.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/import_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/example_pictures.h"
#include "app/desktop/fields.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/workspace/verification.h"
#include "app/host/environment.h"
#include "app/profile/example_traces.h"
#include "app/runs/examples.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/by_enum.h"

namespace stepladder {

Tone status_tone(RunStatus status) {
  return by_enum<RunStatus>(Tone::neutral, Tone::accent, Tone::good, Tone::warning, Tone::bad, Tone::warning,
                            Tone::neutral)[status];
}

void loss_pill(const LossParity& loss) {
  switch (loss.verdict) {
    case LossVerdict::same:
      return pill("= same", Tone::good);
    case LossVerdict::better:
      return pill(loss_text(loss, false), Tone::accent);
    case LossVerdict::worse:
      return pill(loss_text(loss, false), Tone::warning);
    case LossVerdict::inconclusive:
      return pill("inconclusive", Tone::neutral);
    case LossVerdict::diverged:
      return pill("diverged", Tone::bad);
    case LossVerdict::not_comparable:
      return pill("not comparable", Tone::neutral);
  }
}

Tone severity_tone(FlagId id) {
  switch (kind_of(id).severity) {
    case Severity::grave:
      return Tone::bad;
    case Severity::warning:
      return Tone::warning;
    case Severity::note:
      break;
  }
  return Tone::neutral;
}

std::string flag_advice(const Flag& flag) {
  if (!flag.remedy) return flag.why;
  switch (*flag.remedy) {
    case Remedy::give_params:
      return flag.why + " Import it again with the number of parameters.";
    case Remedy::probe_again:
      break;
  }
  return flag.why + " Measure the hardware's peak again while nothing else runs.";
}

namespace {

// "rung 2 over the baseline"
std::string pair_of(const Verification& verification) {
  return "rung " + std::to_string(verification.rung) + " over " +
         (verification.baseline == 0 ? "the baseline" : "rung " + std::to_string(verification.baseline));
}

// "Verified rung 2 over rung 1 in 3 rounds"; the rung's row has the factor, its interval and its number of runs.
std::string outcome_of(const Verification& verification) {
  const std::string rung = pair_of(verification);
  const std::string rounds = plural(static_cast<std::int64_t>(verification.rounds()), "round");
  if (verification.rounds() == 0)
    return "Verification of " + rung +
           (verification.stopped ? ": stopped before the first round" : ": not measured again");
  return verification.stopped ? "Verification of " + rung + ": stopped after " + rounds
                              : "Verified " + rung + " in " + rounds;
}

// "waiting 32 s of 5 min for a quiet machine"; "round 2 of at most 6".
std::string progress_of(const Verification& verification) {
  if (!verification.wait)
    return "round " + std::to_string(verification.rounds() + 1) + ", at most " +
           std::to_string(verification.max_repeats) + " runs each";
  const auto waited =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - verification.wait->since).count();
  std::string text = "waiting " + duration_text(std::max(1.0, std::floor(waited)));
  if (const QuietPatience& patience = verification.wait->patience; patience && *patience != until_quiet)
    text += " of " + duration_text(static_cast<double>(patience->count()));
  return text + " for a quiet machine";
}

// Without intervals: the rung's row has the one of all its runs.
std::string rounds_text(const Verification& verification) {
  std::string text;
  for (std::size_t i = 0; i < verification.answers.size(); ++i)
    text += (i == 0 ? "before " : ", round " + std::to_string(i) + ": ") + factor_text(verification.answers[i].factor);
  return text;
}

}  // namespace

void verification_card(const Workspace& workspace, Commands& commands) {
  const Verification& verification = *workspace.verification;
  if (!verification.open && verification.answers.empty()) return;
  spacing(4);
  begin_card("##verification", ImVec2(0, px(62)));
  const bool waits = verification.open && verification.wait;
  const float stop_width = button_width(verification.open ? "Stop verification" : "Dismiss");
  const float anyway_width = waits ? button_width("Start anyway") + px(8) : 0;
  const float right = ImGui::GetContentRegionMax().x;
  const float width = right - ImGui::GetCursorPosX() - stop_width - anyway_width - px(16);
  const float top = ImGui::GetCursorPosY();
  const std::string head = verification.open ? "Verifying " + pair_of(verification) + ": " + progress_of(verification)
                                             : outcome_of(verification);
  text_cut(in_print(head), width, palette().text, fonts().semibold, text_size);
  mark("verification." + (verification.open ? "open" : head));
  const std::string below = waits && !verification.wait->why.empty() ? verification.wait->why
                            : verification.open                      ? rounds_text(verification)
                                                                     : verification.reason;
  text_cut(in_print(below), right - ImGui::GetCursorPosX(), palette().quiet, fonts().regular, small_size);
  if (ImGui::IsItemHovered() && !below.empty()) ImGui::SetTooltip("%s", in_print(below).c_str());
  ImGui::SetCursorPos(ImVec2(right - stop_width - anyway_width, top - px(4)));
  if (waits) {
    if (quiet_button("Start anyway", "verification.anyway")) commands.push_back(StartAnyway{});
    wrapped_tooltip("Measures in turns while other programs run, and marks the steps that they disturb", 360);
    same_line(8);
  }
  if (quiet_button(verification.open ? "Stop verification" : "Dismiss", "verification.stop"))
    commands.push_back(StopVerification{});
  end_card();
}

namespace {

constexpr const char* what_it_is_for = "Measures which of your speed-ups are real, noise or impossible.";
constexpr const char* how_it_does =
    "Each change to a GPT-like training gets a factor with its interval, a check that the speed is possible, and one "
    "that the loss stays.";
constexpr const char* script_lines =
    "import stepladder\n"
    "stepladder.init(project=\"mine\")\n"
    "with stepladder.timed_step(tokens=batch * seq):\n"
    "    loss = train_step()\n"
    "stepladder.log({\"loss\": loss})\n";

// A way in: its title, what it does and its button at the lower edge. Returns whether it was pressed.
bool way_in(const char* title, const std::string& what, const char* button, const char* name, ImVec2 size,
            bool is_main = false, const char* lines = nullptr) {
  begin_card(name, size);
  text_strong(title);
  if (lines) {
    ImGui::PushFont(fonts().mono, 11.5f);
    ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
    ImGui::TextUnformatted(lines);
    ImGui::PopStyleColor();
    ImGui::PopFont();
  } else {
    text_quiet_wrapped(what);
  }
  ImGui::SetCursorPosY(size.y - px(14) - ImGui::GetFrameHeight());
  const bool pressed = is_main ? primary_button(button, true, name) : quiet_button(button, name);
  if (lines) wrapped_tooltip(what, 360);
  end_card();
  return pressed;
}

float example_picture_height() {
  return px(76);
}

// An example as a card that is a button, with a small picture of it at the lower edge.
bool example_card(const std::string& title, const std::string& what, const std::string& name, ImVec2 size,
                  void (*draw_picture)(ImVec2 low, ImVec2 high)) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 after = ImGui::GetCursorPos();
  const bool pressed = ImGui::InvisibleButton(name.c_str(), size);
  mark(name);
  const bool is_lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + size.x, at.y + size.y);
  draw->AddRectFilled(at, end, u32(is_lit ? palette().accent : palette().card, is_lit ? 0.12f : 1.0f), px(8));
  draw->AddRect(at, end, u32(is_lit ? palette().accent : palette().line), px(8));
  ImGui::SetCursorPos(ImVec2(after.x + px(16), after.y + px(12)));
  ImGui::BeginGroup();
  ImGui::PushTextWrapPos(after.x + size.x - px(16));
  text_in(title, fonts().semibold, 13.5f);
  text_quiet(what);
  ImGui::PopTextWrapPos();
  ImGui::EndGroup();
  draw_picture(ImVec2(at.x + px(16), end.y - px(16) - example_picture_height()),
               ImVec2(end.x - px(16), end.y - px(16)));
  ImGui::SetCursorPos(after);
  ImGui::Dummy(size);
  return pressed;
}

// A button for each example, in a row that goes on.
void draw_examples(Commands& commands) {
  for (const ExampleFile& example : example_files) {
    flow_to(example.title);
    if (quiet_button(example.title, std::string("start.") + example.file))
      commands.push_back(OpenExample{path_of(example), example.gpu});
    wrapped_tooltip(example.what, 360);
  }
  flow_to(example_traces_title);
  if (quiet_button(example_traces_title, "start.example")) commands.push_back(OpenExampleTraces{});
  wrapped_tooltip("A step of modded-nanogpt on 8 H100 before and after a record's change, in Profile", 360);
}

// Above what an example shows: that it is one, and the ways on.
void draw_example_strip(Commands& commands) {
  ImGui::AlignTextToFramePadding();
  text_quiet("An example, not yours.");
  const auto button = [&](const char* label, const char* name) {
    flow_to(label);
    return quiet_button(label, name);
  };
  if (button("Launch a ladder", "start.launch")) commands.push_back(ShowPanel{"launch"});
  if (button("Import a log or trace", "start.import")) commands.push_back(ShowPanel{"import"});
  draw_examples(commands);
  if (button("Remove the examples", "start.remove")) commands.push_back(RemoveExamples{});
  wrapped_tooltip("Their runs go to the bin, their traces are removed; Ctrl+Z brings all back", 360);
  spacing(4);
}

}  // namespace

std::int64_t count_examples(const Workspace& workspace) {
  return std::count_if(workspace.runs().begin(), workspace.runs().end(),
                       [](const RunEntry& entry) { return is_example(entry.run); });
}

bool has_examples(const Workspace& workspace) {
  return count_examples(workspace) > 0 ||
         std::any_of(workspace.traces.begin(), workspace.traces.end(),
                     [](const StoredTrace& trace) { return is_example_file(trace.source_path); });
}

bool has_only_examples(const Workspace& workspace) {
  return std::all_of(workspace.runs().begin(), workspace.runs().end(),
                     [](const RunEntry& entry) { return is_example(entry.run); });
}

void example_buttons(Commands& commands) {
  ImGui::AlignTextToFramePadding();
  text_quiet("Examples");
  draw_examples(commands);
}

void start_here(const Workspace& workspace, Commands& commands, const std::string& empty, const std::string& if_runs) {
  if (empty.empty()) return draw_example_strip(commands);
  if (!if_runs.empty() && !has_only_examples(workspace)) {
    constexpr std::array<EmptyButton, 2> buttons{
        {{"Launch a ladder", "start.launch", true}, {"Open History", "start.history"}}};
    const int pressed = empty_state(if_runs, "Launch a ladder to see it here, or open History for the runs.", buttons);
    if (pressed >= 0) commands.push_back(ShowPanel{pressed == 0 ? "launch" : "history"});
    return;
  }
  text_quiet(empty);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(12);
  const float all = std::min(room.x, px(1180));
  const float left = ImGui::GetCursorPosX() + (room.x - all) / 2;
  const float ways_height = px(150), examples_height = px(104) + example_picture_height();
  const float content = px(70) + ways_height + px(48) + examples_height;
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::max(0.0f, (room.y - content) * 0.38f));
  ImGui::SetCursorPosX(left);
  text_in(what_it_is_for, fonts().display, 26);
  ImGui::SetCursorPosX(left);
  text_cut(how_it_does, all, palette().quiet, fonts().regular, text_size);
  spacing(8);
  ImGui::SetCursorPosX(left);
  const ImVec2 size((all - 2 * gap) / 3, ways_height);
  if (way_in(
          "Measure here",
          "Trains a baseline, then adds one optimisation at a time: the rungs of a ladder. The proposed ladder takes "
          "about a minute.",
          "Launch a ladder", "start.launch", size, true))
    commands.push_back(ShowPanel{"launch"});
  ImGui::SameLine(0, gap);
  if (way_in("Judge what you have",
             "Drop a training's log, a profiler's trace or another tracker's folder on this window. The speeds that no "
             "hardware can reach are marked.",
             "Import a log or trace", "start.import", size))
    commands.push_back(ShowPanel{"import"});
  ImGui::SameLine(0, gap);
  if (way_in("Follow your script",
             "Paste them into your script; then `stepladder follow stepladder/` shows the run here", "Copy the lines",
             "start.follow", size, false, script_lines))
    commands.push_back(CopyText{script_lines, "the lines for your script"});
  spacing(14);
  ImGui::SetCursorPosX(left);
  text_quiet("Or open an example:");
  ImGui::SetCursorPosX(left);
  constexpr std::array pictures{draw_impossible_picture, draw_real_picture, draw_tries_picture};
  const auto cards = static_cast<float>(example_files.size() + 1);
  const ImVec2 card((all - (cards - 1) * gap) / cards, examples_height);
  for (std::size_t i = 0; i < example_files.size(); ++i) {
    const ExampleFile& example = example_files[i];
    if (example_card(example.title, example.what, std::string("start.") + example.file, card, pictures[i]))
      commands.push_back(OpenExample{path_of(example), example.gpu});
    ImGui::SameLine(0, gap);
  }
  if (example_card(example_traces_title,
                   "One step on 8 H100, before and after a record's change: does any kernel take less?",
                   "start.example", card, draw_traces_picture))
    commands.push_back(OpenExampleTraces{});
}

Tone tone_of(RungAnswer answer, bool is_over) {
  switch (answer) {
    case RungAnswer::real:
      return Tone::good;
    case RungAnswer::slower:
    case RungAnswer::slower_once:
    case RungAnswer::impossible:
      return Tone::bad;
    case RungAnswer::faster_once:
    case RungAnswer::cannot_tell:
      return is_over ? Tone::warning : Tone::neutral;
    case RungAnswer::baseline:
    case RungAnswer::noise:
    case RungAnswer::no_effect:
      break;
  }
  return Tone::neutral;
}

std::string end_text(const RunEntry& entry) {
  const Run& run = entry.run;
  if (run.reason.empty() || !is_over(run.status)) return "";
  std::string text = capitalised(std::string(to_string(run.status)));
  if (entry.summary.steps > 0)
    text += " at step " + grouped(entry.summary.last_step) +
            (run.planned_steps > entry.summary.last_step ? " of " + grouped(run.planned_steps) : "");
  text += ": " + run.reason + (run.reason.ends_with('.') ? "" : ".");
  if (run.status == RunStatus::finished) return text;
  return text + (entry.summary.steps > 0 ? " Its " + plural(entry.summary.steps, "step") +
                                               (entry.summary.steps > 1 ? " are" : " is") + " saved."
                                         : " It had no step yet.");
}

std::string hardware_text(const Run& run) {
  const std::size_t name = run.hardware.find(" x ");
  if (run.device != "cpu" || name == std::string::npos || run.hardware.find_first_not_of("0123456789") != name)
    return in_print(run.hardware);
  return run.hardware.substr(name + 3) + ", " + plural(std::atoll(run.hardware.c_str()), "core");
}

bool can_trace(const Run& run) {
  return run.source == "launched" && is_over(run.status);
}

constexpr const char* rescue_label = "Save what can be read...";
constexpr const char* why_disabled = "The project is open for reading only";

void begin_change(const Workspace& workspace) {
  ImGui::BeginDisabled(!workspace.read_only.empty());
}
void end_change(const Workspace& workspace) {
  ImGui::EndDisabled();
  if (!workspace.read_only.empty()) wrapped_tooltip(why_disabled, 360);
}

bool change_button(const Workspace& workspace, const char* label, const std::string& name, const char* tooltip) {
  begin_change(workspace);
  const bool is_pressed = quiet_button(label, name);
  end_change(workspace);
  if (workspace.read_only.empty() && tooltip[0] != 0) wrapped_tooltip(tooltip, 360);
  return is_pressed;
}

void trace_button(const Workspace& workspace, const Run& run, const std::string& name, Commands& commands) {
  if (!can_trace(run)) return;
  const std::string why_not = workspace.why_not_measure();
  flow_to(trace_label);
  ImGui::BeginDisabled(!why_not.empty());
  const bool is_pressed =
      change_button(workspace, trace_label, name,
                    !why_not.empty() ? why_not.c_str()
                                     : "Trains a few steps of its recipe again, in a process of its own, and shows in "
                                       "Profile where a step's time goes; no run is recorded");
  ImGui::EndDisabled();
  if (is_pressed) commands.push_back(TraceRun{run.id});
}

void project_strip(const Workspace& workspace, Commands& commands) {
  const bool is_damaged = !workspace.damage.empty();
  if (workspace.read_only.empty() && !is_damaged) return;
  std::int64_t steps = 0;
  for (const RunEntry& entry : workspace.runs()) steps += entry.summary.steps;
  const std::string text = !is_damaged
                               ? workspace.read_only + ". Nothing can be changed or trained in it."
                               : "Parts of this file can't be read: of what is shown (" +
                                     plural(std::ssize(workspace.runs()), "run") + ", " + plural(steps, "step") +
                                     ") some may be lost. Save what can be read in a new file, and go on there.";
  const char* const word = is_damaged ? "damaged" : "read only";
  const Tone tone = is_damaged ? Tone::bad : Tone::warning;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size(ImGui::GetContentRegionAvail().x, px(38));
  ImGui::GetWindowDrawList()->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), u32(tone_colour(tone), 0.12f));
  const float pill_width = pill_size(word).x, pill_height = pill_size(word).y;
  const float button = is_damaged ? button_width(rescue_label) + px(26) : 0;
  ImGui::SetCursorScreenPos(ImVec2(at.x + px(26), at.y + (size.y - pill_height) / 2));
  pill(word, tone);
  ImGui::SetCursorScreenPos(ImVec2(at.x + px(36) + pill_width, at.y + (size.y - px(13.5f) * 1.2f) / 2));
  text_cut(text, size.x - pill_width - px(62) - button, palette().text, fonts().regular, 13.5f);
  if (is_damaged) wrapped_tooltip(text + "\n\nFound: " + workspace.damage, 560);
  mark(is_damaged ? "damaged" : "read_only");
  if (is_damaged) {
    ImGui::SetCursorScreenPos(ImVec2(at.x + size.x - button, at.y + (size.y - ImGui::GetFrameHeight()) / 2));
    if (quiet_button(rescue_label, "damaged.rescue")) commands.push_back(LeaveForRescue{});
  }
  ImGui::SetCursorScreenPos(ImVec2(at.x, at.y + size.y));
}

std::optional<RunId> run_combo(const char* id, const std::string& words, const Workspace& workspace, RunId chosen,
                               float width) {
  std::optional<RunId> picked;
  ImGui::SetNextItemWidth(width);
  ImGui::SetNextWindowSizeConstraints(ImVec2(px(380), 0), ImVec2(px(640), px(420)));
  if (!ImGui::BeginCombo(id, combo_text(words, width).c_str())) return picked;
  bool take_first = false;
  const std::string typed = list_search("Search runs", workspace.runs().size(), &take_first);
  std::vector<const RunEntry*> found;  // newest first
  for (auto entry = workspace.runs().rbegin(); entry != workspace.runs().rend(); ++entry)
    if (holds(entry->run.name, typed)) found.push_back(&*entry);
  if (found.empty()) text_quiet(workspace.runs().empty() ? "No runs yet" : "No matches");
  draw_rows(found.size(), [&](std::size_t i) {
    const Run& run = found[i]->run;
    if (ImGui::Selectable((run.name + "##" + std::to_string(run.id)).c_str(), run.id == chosen)) picked = run.id;
    if (i == 0 && !typed.empty()) mark_taken_by_enter();
  });
  if (take_first && !found.empty()) {
    picked = found.front()->run.id;
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndCombo();
  return picked;
}

}  // namespace stepladder
