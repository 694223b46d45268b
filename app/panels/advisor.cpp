// Advisor: where the time of the current run's step goes, what the next change would buy with the evidence for it, and
// what earlier predictions were worth.
#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/operator_bars.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/advice_view.h"
#include "app/panels/past_predictions.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

// "Batch 16, gradient accumulation 2"
std::string text_of(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    const std::string words = name == "grad_accum" ? "gradient accumulation" : name;
    text += (text.empty() ? "" : ", ") + words + " " + value;
  }
  return capitalised(std::move(text));
}

// The stage, or the same stages with other values.
PlannedRung rung_of(const Advice& advice) {
  return {.stages = {advice.stage.empty() ? all_stages().front().id : advice.stage}, .values = advice.values};
}

// The change as a label; empty if the stage or a button names it.
std::string change_text(const Advice& advice) {
  switch (advice.change) {
    case Change::set_values:
      return text_of(advice.values);
    case Change::wait_for_device:
      return "Wait for the device before reading the clock";
    case Change::check_peak:
      return "Correct the hardware's peak in hardware.csv, or the run's hardware and parameters";
    case Change::lower_learning_rate:
      return "Lower learning rate";
    case Change::load_ahead:
      return "Read the next batch while this one trains";
    case Change::larger_kernels:
      return "Fewer and larger kernels, or work prepared ahead on the CPU";
    case Change::none:
    case Change::repeat:
      break;
  }
  return "";
}

std::string gain_words(const ExpectedGain& gain) {
  return in_print(gain.low == gain.high ? factor_text(gain.low)
                                        : factor_text(gain.low) + " to " + factor_text(gain.high));
}

bool is_ours(const RunEntry& entry) {
  return entry.run.source == "launched";
}

bool is_problem(const Advice& advice) {
  return advice.kind == AdviceKind::trust || advice.kind == AdviceKind::stability;
}

// Whether the project can train it as a rung on top of the run.
bool can_launch(const Workspace& workspace, const Advice& advice, const RunEntry& about) {
  return is_ours(about) && (!advice.stage.empty() || !advice.values.empty()) &&
         !workspace.advice->unavailable.contains(advice.stage);
}

// One pair of rungs, without an interval: it may be noise.
bool is_one_pair(const ExpectedGain& gain) {
  return gain.low == gain.high && gain.source == GainSource::own_measurement;
}

bool is_loss(const ExpectedGain& gain) {
  return gain.known() && gain.high < 1;
}

// A bar from 1 x to the highest expected gain, with the uncertain part paler, and the reason to believe it.
void draw_gain(const Advice& advice) {
  const ExpectedGain& gain = advice.gain;
  const float width = ImGui::GetContentRegionAvail().x;
  if (!gain.known()) return text_quiet(gain.needs_trace ? "gain unknown without a trace" : "gain unknown");
  if (!gain.doubt.empty()) {
    text_quiet(gain_words(gain));
    return text_sentence(gain.doubt, gain.doubt == to_string(Trust::impossible) ? Tone::bad : Tone::warning);
  }
  const bool is_gain = advice.kind == AdviceKind::speed;
  const std::string source =
      in_print(source_text(gain)) + (is_one_pair(gain) ? "; one pair, so without an interval" : "");
  if (is_loss(gain)) {
    text_sentence(gain_words(gain) + ", slower", Tone::bad);
    return text_quiet_wrapped(source);
  }
  text_in(gain_words(gain), is_gain ? fonts().semibold : fonts().regular, text_size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(8);
  constexpr double full = 3;  // a factor of three fills the bar
  const auto place = [&](double factor) {
    return at.x + width * static_cast<float>(std::clamp((factor - 1) / (full - 1), 0.0, 1.0));
  };
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().line), px(3));
  draw->AddRectFilled(at, ImVec2(place(gain.high), at.y + height), u32(palette().good, 0.4f), px(3));
  draw->AddRectFilled(at, ImVec2(place(gain.low), at.y + height), u32(palette().good), px(3));
  ImGui::Dummy(ImVec2(width, height));
  text_quiet_wrapped(source);
}

// "2 runs of 40 steps, about 3 s"
std::string cost_text(const RunEntry& about) {
  const std::string runs = "2 runs of " + plural(about.run.planned_steps, "step");
  const double ms = about.summary.dt_ms_median;
  if (is_missing(ms)) return runs;
  return runs + ", about " + duration_text(std::max(1.0, 2e-3 * ms * static_cast<double>(about.run.planned_steps)));
}

// The button that does what is advised; nothing if only the user can.
void draw_buttons(const Workspace& workspace, const Advice& advice, const RunEntry& about, std::size_t place,
                  bool is_main, Commands& commands) {
  const std::string id = std::to_string(place);
  const auto button = [&](const char* label, const std::string& name, const std::string& tooltip) {
    begin_change(workspace);
    const bool is_pressed = is_main ? primary_button(label, true, name) : quiet_button(label, name);
    end_change(workspace);
    if (workspace.read_only.empty()) wrapped_tooltip(tooltip, 360);
    return is_pressed;
  };
  const bool is_doubt = advice.kind == AdviceKind::trust && advice.change == Change::none;
  if (is_loss(advice.gain)) return;
  if (can_launch(workspace, advice, about)) {
    const std::string words = advice.stage.empty() ? change_text(advice) : advice.stage;
    ProposeStage proposed{about.run.id, rung_of(advice), words};
    if (button("Launch it", "advisor.try." + id,
               "Trains this run's recipe and then the same with " + words + ": " + cost_text(about))) {
      proposed.starts = true;
      commands.push_back(proposed);
    }
    if (!is_main) return;
    same_line(8);
    if (quiet_button("Edit", "advisor.edit." + id)) commands.push_back(proposed);
    wrapped_tooltip("Fills Launch with it, to change something first", 360);
    text_quiet(cost_text(about));
  } else if (const auto why = workspace.advice->unavailable.find(advice.stage);
             why != workspace.advice->unavailable.end()) {
    text_quiet_wrapped("Not here: " + why->second);
  } else if (is_ours(about) && (advice.change == Change::repeat || is_doubt)) {
    if (button("Repeat run", "advisor.repeat." + id, "Trains the same recipe again"))
      commands.push_back(Repeat{{about.run.id}, is_doubt ? 1 : 2});
  } else if (const std::string change = change_text(advice); !change.empty()) {
    text_quiet_wrapped(change);
  }
}

void draw_advice(const Workspace& workspace, const Advice& advice, const RunEntry& about, std::size_t place,
                 bool is_main, Commands& commands) {
  ImGui::PushID(static_cast<int>(place));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushTextWrapPos(0);
  text_in(advice.title, fonts().semibold, text_size);
  if (is_problem(advice))
    text_sentence(in_print(advice.why), advice.kind == AdviceKind::trust ? Tone::warning : Tone::bad);
  else
    text_quiet(in_print(advice.why));
  if (!advice.risk.empty()) text_quiet("Risk: " + advice.risk);
  ImGui::PopTextWrapPos();
  ImGui::TableNextColumn();
  if (advice.kind == AdviceKind::speed || advice.kind == AdviceKind::open) draw_gain(advice);
  ImGui::TableNextColumn();
  draw_buttons(workspace, advice, about, place, is_main, commands);
  ImGui::PopID();
}

// What the next rung would buy, as one sentence.
std::string answer_of(const Workspace& workspace, const RunEntry& about) {
  const std::vector<Advice>& list = workspace.advice->list;
  const auto next = std::ranges::find_if(list, [](const Advice& advice) {
    return advice.kind == AdviceKind::speed && advice.gain.known() && !is_loss(advice.gain);
  });
  const bool is_doubtful = !list.empty() && list.front().kind == AdviceKind::trust;
  const std::string doubt = is_doubtful ? " The run is doubtful, and so is what follows from its numbers." : "";
  if (next != list.end())
    return "Next: " + next->title + ", " + gain_words(next->gain) + " (" + in_print(source_text(next->gain)) +
           (is_one_pair(next->gain) ? "; one pair, which may be noise)." : ").") + doubt;
  const bool can_measure =
      std::ranges::any_of(list, [&](const Advice& each) { return can_launch(workspace, each, about); });
  if (can_measure) return "No gain is known yet: launch a rung to measure it." + doubt;
  if (is_doubtful) return list.front().title + ": see to that before anything else.";
  if (is_ours(about)) return "Nothing is left to try here.";
  const bool has_later_rungs = std::ranges::any_of(list, [](const Advice& each) { return !each.gain.doubt.empty(); });
  return has_later_rungs ? "No later rung of this log can be believed, so what the next one would buy isn't known."
                         : "This log doesn't say what a next rung would buy.";
}

void draw_times(const Workspace& workspace, const RunEntry& about, Commands& commands) {
  const AdviceView& advice = *workspace.advice;
  const double step_ms = about.summary.dt_ms_median;
  text_strong("Where " + (is_missing(step_ms) ? "a step's time" : "a step's " + milliseconds_text(step_ms)) +
              (is_missing(step_ms) ? " goes" : " go"));
  spacing(2);
  if (advice.times.profile.steps > 0) {
    draw_operator_bars(advice.times, palette().accent, nullptr, false);
    spacing(2);
    text_quiet_wrapped(in_print(fit_text(advice.times)));
  } else {
    text_quiet_wrapped("Not known: " + why_no_profile(about.run) + ".");
  }
  if (advice.has_trace) return;
  spacing(4);
  if (!can_trace(about.run)) {
    if (quiet_button("Import a trace of it", "advisor.profile")) commands.push_back(ShowPanel{"profile"});
    wrapped_tooltip("A trace attached to the run says where its time goes, and predicts what stages would buy", 360);
    return;
  }
  ImGui::Dummy(ImVec2(ImGui::GetContentRegionAvail().x, 0));  // so that the button begins a line
  trace_button(workspace, about.run, "advisor.trace", commands);
  text_quiet_wrapped("A trace predicts what each stage would buy.");
}

void draw_next(const Workspace& workspace, const RunEntry& about, Commands& commands) {
  const std::vector<Advice>& list = workspace.advice->list;
  text_strong("What the next rung would buy");
  for (const std::string& note : workspace.advice->notes) text_quiet_wrapped(in_print(note));
  if (!is_ours(about)) {
    text_quiet_wrapped("Trained elsewhere: what its own log measured next, and bounds by its own numbers.");
    if (about.run.ladder) {
      if (quiet_button("Reproduce here", "advisor.reproduce")) commands.push_back(ProposeLadder{*about.run.ladder});
      wrapped_tooltip("Fills Launch with the stages of this ladder, in sizes that fit this machine", 360);
    }
  }
  spacing(4);
  if (list.empty()) return text_quiet_wrapped("Nothing more that this run's numbers speak for.");
  // The first that can be launched with a known gain, else the first that can be launched.
  std::size_t main = list.size();
  for (std::size_t i = list.size(); i-- > 0;)
    if (can_launch(workspace, list[i], about) && !is_loss(list[i].gain) &&
        (list[i].gain.known() || main == list.size() || !list[main].gain.known()))
      main = i;
  const float room = ImGui::GetContentRegionAvail().x;
  const bool is_wide = room > px(560);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(8), px(8)));
  // Wider, a change would be far from its gain.
  if (ImGui::BeginTable("##advice", 3, ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoSavedSettings,
                        ImVec2(std::min(room, px(1000)), 0))) {
    ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("gain", ImGuiTableColumnFlags_WidthFixed, px(is_wide ? 200 : 130));
    ImGui::TableSetupColumn("do", ImGuiTableColumnFlags_WidthFixed, px(is_wide ? 170 : 110));
    for (std::size_t i = 0; i < list.size(); ++i) draw_advice(workspace, list[i], about, i, i == main, commands);
    ImGui::EndTable();
  }
  ImGui::PopStyleVar();
  mark("advisor.answer");
}

std::string held_text(Held held) {
  const char* sign = held == Held::less          ? "\xE2\x88\x92 "
                     : held == Held::more        ? "+ "
                     : held == Held::as_expected ? "= "
                                                 : "";
  return sign + std::string(to_string(held));
}

Tone tone_of(Held held) {
  return held == Held::less ? Tone::warning : held == Held::is_source ? Tone::neutral : Tone::good;
}

void draw_outcomes(const Workspace& workspace, Commands& commands) {
  const std::vector<AdviceOutcome>& outcomes = workspace.advice->outcomes;
  if (outcomes.empty()) return;
  spacing(12);
  text_strong("Earlier advice");
  std::size_t held = 0, scored = 0;
  for (const AdviceOutcome& outcome : outcomes) {
    if (outcome.held == Held::is_source) continue;
    ++scored;
    held += outcome.held != Held::less ? 1 : 0;
  }
  if (scored > 0)
    text_quiet(std::to_string(held) + " of " + std::to_string(scored) + " gained at least as much as expected");
  spacing(4);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const AdviceOutcome& outcome = outcomes[i];
    ImGui::PushID(static_cast<int>(i));
    pill(held_text(outcome.held), tone_of(outcome.held));
    ImGui::PushTextWrapPos(0);
    text_strong(outcome.advice.title);
    ImGui::PopTextWrapPos();
    if (const RunEntry* after = workspace.find(outcome.after))
      text_cut(after->run.name, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size,
               Cut::middle);
    text_quiet_wrapped(in_print(outcome.sentence));
    if (ImGui::IsItemHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left))
      commands.push_back(OpenRun{outcome.after});
    spacing(6);
    ImGui::PopID();
  }
}

void draw(const Workspace& workspace, Commands& commands) {
  const float top = ImGui::GetCursorPosY();
  text_title("Advisor");
  const RunEntry* about = workspace.current_run();
  if (!about) {
    text_quiet("Where a run's time goes, and what the next rung would buy");
    return start_here(workspace, commands, "No run yet. Advice on a run appears here.");
  }
  const bool is_stale = workspace.advice->about != about->run.id || workspace.advice->made_for != workspace.version;
  if (is_stale && !commands.data.advice) commands.data.advice = about->run.id;
  const bool is_known = workspace.advice->about == about->run.id && is_over(about->run.status);
  const float picker = px(320);
  text_cut(is_known ? answer_of(workspace, *about) : "Where a run's time goes, and what the next rung would buy",
           ImGui::GetContentRegionAvail().x - picker - px(16), palette().text, fonts().semibold, text_size);
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - picker, top));
  if (const auto picked = run_combo("##about", about->run.name, workspace, about->run.id, picker)) {
    commands.push_back(ChooseRun{*picked});
    commands.data.advice = *picked;
  }
  mark("advisor.run");
  ImGui::SetCursorPosY(below);
  spacing(6);
  if (!is_over(about->run.status))
    return empty_state(about->run.name + " isn't over", "Advice on it appears here when it has ended.");
  if (!is_known) return;
  const float room = ImGui::GetContentRegionAvail().x;
  const auto past = [&] {
    spacing(12);
    if (!workspace.advice->past.empty()) {
      ImGui::BeginChild("##past", ImVec2(std::min(ImGui::GetContentRegionAvail().x, px(480)), 0),
                        ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened);
      draw_past_predictions(workspace.advice->past);
      ImGui::EndChild();
    }
    draw_outcomes(workspace, commands);
  };
  constexpr std::size_t few_rows = 5;  // which leave room beneath
  const bool is_short = workspace.advice->list.size() <= few_rows;
  begin_card("##why", ImVec2(std::clamp(room * 0.36f, px(260), px(520)), 0), true);
  draw_times(workspace, *about, commands);
  if (!is_short) past();
  end_card();
  same_line(16);
  begin_card("##next", ImVec2(0, 0), true);
  draw_next(workspace, *about, commands);
  if (is_short) past();
  end_card();
}

}  // namespace

Panel panels::advisor() {
  return {.id = "advisor", .title = "Advisor", .draw = draw};
}

}  // namespace stepladder
