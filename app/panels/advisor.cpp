// Advisor: where the time of the current run's step goes, what the next change would buy with the evidence for it, and
// what earlier predictions were worth.
#include <imgui.h>
#include <imgui_internal.h>  // whether the line continues

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
#include "engine/stage.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

struct Kind {
  const char* word;
  Tone tone;
};

Kind kind_of(AdviceKind kind) {
  return by_enum<AdviceKind>(Kind{"fix first", Tone::bad}, Kind{"stability", Tone::warning}, Kind{"speed", Tone::good},
                             Kind{"certainty", Tone::accent})[kind];
}

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
  if (!gain.known()) return "unknown gain";
  return in_print(gain.low == gain.high ? factor_text(gain.low)
                                        : factor_text(gain.low) + " to " + factor_text(gain.high));
}

// A bar from 1 x to the highest expected gain; the uncertain part is paler.
void draw_gain(const ExpectedGain& gain, float width) {
  if (!gain.known()) return text_quiet(gain.needs_trace ? "A trace of this run predicts the gain" : "unknown gain");
  text_strong(gain_words(gain));
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
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
  text_quiet(in_print(source_text(gain)));
  ImGui::PopTextWrapPos();
}

bool is_ours(const RunEntry& entry) {
  return entry.run.source == "launched";
}

// The button that does what is advised; none if only the user can. Returns whether there is one.
bool draw_try(const Workspace& workspace, const Advice& advice, const RunEntry& about, std::size_t place, bool is_main,
              Commands& commands) {
  const std::string id = std::to_string(place);
  const auto button = [&](const char* label, const std::string& name, const std::string& tooltip) {
    begin_change(workspace);
    const bool is_pressed = is_main ? primary_button(label, true, name) : quiet_button(label, name);
    end_change(workspace);
    if (workspace.read_only.empty()) ImGui::SetItemTooltip("%s", tooltip.c_str());
    return is_pressed;
  };
  const bool is_doubt = advice.kind == AdviceKind::trust && advice.change == Change::none;
  if (is_ours(about) && (!advice.stage.empty() || !advice.values.empty())) {
    const std::string words = advice.stage.empty() ? change_text(advice) : advice.stage;
    if (button("Measure it in Launch", "advisor.try." + id,
               "Fills Launch with this run's recipe as the baseline and " + words +
                   " as its rung. Launch says how long it takes; nothing starts yet."))
      commands.push_back(ProposeStage{about.run.id, rung_of(advice), words});
  } else if (is_ours(about) && (advice.change == Change::repeat || is_doubt)) {
    if (button("Repeat run", "advisor.repeat." + id, "Trains the same recipe again"))
      commands.push_back(Repeat{{about.run.id}, is_doubt ? 1 : 2});
  } else if (!advice.stage.empty() && about.run.ladder) {
    if (button("Reproduce here", "advisor.reproduce." + id,
               "Fills Launch with the stages of this ladder, in sizes that fit this machine; add " + advice.stage))
      commands.push_back(ProposeLadder{*about.run.ladder});
  } else {
    return false;
  }
  return true;
}

// The first stage with a known gain, else the first stage, else the first advice.
std::size_t next_of(const std::vector<Advice>& list) {
  std::size_t next = list.size();
  for (std::size_t i = list.size(); i-- > 0;) {
    if (list[i].kind != AdviceKind::speed) continue;
    const bool is_known = list[i].gain.known();
    if (next == list.size() || is_known || !list[next].gain.known()) next = i;
  }
  return next == list.size() ? 0 : next;
}

void draw_times(const Workspace& workspace, const RunEntry& about, Commands& commands) {
  const StepTimes& times = workspace.advice->times;
  text_strong(times.kinds ? "Why a step takes " + milliseconds_text(times.step_ms)
                          : "Why a step takes as long as it does");
  spacing(2);
  if (times.kinds)
    draw_operator_bars(
        {.times = *times.kinds, .step_ms = times.step_ms}, [](OperatorKind) { return palette().accent; }, nullptr,
        false);
  spacing(2);
  text_quiet_wrapped(in_print(times.kinds ? times.from : "Not known: " + times.from + "."));
  if (times.has_trace) return;
  spacing(2);
  text_quiet_wrapped("A trace of it predicts what each stage would buy.");
  if (!can_trace(about.run)) {
    if (quiet_button("Open Profile", "advisor.profile")) commands.push_back(ShowPanel{"profile"});
    ImGui::SetItemTooltip(
        "Import there a trace of the run, and attach it: it says where the time goes and predicts "
        "what the stages would buy");
    return;
  }
  ImGui::Dummy(ImVec2(ImGui::GetContentRegionAvail().x, 0));  // so that the button begins a line
  begin_change(workspace);
  trace_button(about.run, workspace.running() != nullptr, "advisor.trace", commands);
  end_change(workspace);
}

void draw_next(const Workspace& workspace, const RunEntry& about, std::size_t next, Commands& commands) {
  const std::vector<Advice>& list = workspace.advice->list;
  const bool has_stage = !list.empty() && list[next].kind == AdviceKind::speed;
  text_strong(list.empty() || has_stage ? "What the next change would buy" : "What to do next");
  if (list.empty()) return text_quiet_wrapped("Nothing more that this run's numbers speak for.");
  const Advice& advice = list[next];
  const float width = ImGui::GetContentRegionAvail().x;
  text_cut(advice.title, width, palette().text, fonts().display, title_size);
  if (advice.kind == AdviceKind::speed) {
    spacing(2);
    draw_gain(advice.gain, std::min(width, px(360)));
  }
  spacing(2);
  ImGui::PushTextWrapPos(0);
  text_in(in_print(advice.why), fonts().regular, 13.5f);
  if (!advice.risk.empty()) text_quiet("Risk: " + advice.risk);
  ImGui::PopTextWrapPos();
  if (next > 0 && list.front().kind == AdviceKind::trust)
    text_sentence("The run is doubtful, and so is what follows from its numbers.", Tone::warning);
  spacing(4);
  const bool has_button = draw_try(workspace, advice, about, next, true, commands);
  if (!has_button)
    text_quiet_wrapped(change_text(advice).empty() ? "It was trained elsewhere, so this is to be done there."
                                                   : change_text(advice) + ".");
  if (workspace.advice->all_together.empty()) return;
  spacing(6);
  text_quiet_wrapped(in_print(workspace.advice->all_together));
}

// Why the step takes its time, and what the next change would buy.
void draw_answer(const Workspace& workspace, const RunEntry& about, std::size_t next, Commands& commands) {
  begin_tall_card("##answer");
  const float room = ImGui::GetContentRegionAvail().x;
  const float gap = px(24);
  const bool is_wide = room > px(560);
  const float left = is_wide ? (room - gap) * 0.46f : room;
  ImGui::BeginChild("##why", ImVec2(left, 0), ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened);
  draw_times(workspace, about, commands);
  ImGui::EndChild();
  if (is_wide)
    ImGui::SameLine(0, gap);
  else
    spacing(8);
  ImGui::BeginChild("##next", ImVec2(0, 0), ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened);
  draw_next(workspace, about, next, commands);
  ImGui::EndChild();
  end_card();
  mark("advisor.answer");
}

void draw_advice(const Workspace& workspace, const Advice& advice, const RunEntry& about, std::size_t place,
                 Commands& commands) {
  ImGui::PushID(static_cast<int>(place));
  const float width = ImGui::GetContentRegionAvail().x;
  const float side = std::min(px(250), width * 0.36f);
  begin_tall_card("##advice");
  const float text_width = ImGui::GetContentRegionAvail().x - (advice.kind == AdviceKind::speed ? side + px(24) : 0);
  ImGui::BeginGroup();
  const Kind kind = kind_of(advice.kind);
  pill(kind.word, kind.tone);
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(3));
  text_cut(advice.title, text_width - px(150), palette().text, fonts().semibold, text_size);
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + std::min(text_width, px(860)));
  text_in(in_print(advice.why), fonts().regular, 13.5f);
  if (!advice.risk.empty()) text_quiet("Risk: " + advice.risk);
  ImGui::PopTextWrapPos();
  if (draw_try(workspace, advice, about, place, false, commands)) same_line(8);
  if (const std::string change = change_text(advice); !change.empty()) {
    ImGui::AlignTextToFramePadding();
    text_in(change, fonts().regular, 12.5f);
    same_line(16);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(advice.evidence.size(), 3); ++i) {
    const RunEntry* run = workspace.find(advice.evidence[i]);
    if (!run || run->run.id == about.run.id) continue;
    if (quiet_button(("run " + std::to_string(run->run.id)).c_str())) commands.push_back(OpenRun{run->run.id});
    ImGui::SetItemTooltip("%s", run->run.name.c_str());
    same_line(6);
  }
  if (ImGui::GetCurrentWindow()->DC.IsSameLine) ImGui::NewLine();
  ImGui::EndGroup();
  if (advice.kind == AdviceKind::speed) {
    ImGui::SameLine(ImGui::GetContentRegionMax().x - side);
    ImGui::BeginGroup();
    draw_gain(advice.gain, side);
    ImGui::EndGroup();
  }
  end_card();
  ImGui::PopID();
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
  text_strong("Earlier advice");
  const std::vector<AdviceOutcome>& outcomes = workspace.advice->outcomes;
  if (outcomes.empty()) {
    text_quiet_wrapped(
        "Expected and actual gains appear here once a stage that would have been advised is measured on a ladder.");
    return;
  }
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

constexpr const char* explanation = "Why a run's step takes its time, and what the next change would buy";

void draw(const Workspace& workspace, Commands& commands) {
  const float top = ImGui::GetCursorPosY();
  text_title("Advisor");
  const RunEntry* about = workspace.current_run();
  text_quiet(explanation);
  if (!about) return start_here(workspace, commands, "No run yet. Advice on a run appears here.");
  const float below = ImGui::GetCursorPosY();
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - px(320), top));
  if (const auto picked = run_combo("##about", about->run.name, workspace, about->run.id, px(320))) {
    commands.push_back(ChooseRun{*picked});
    commands.data.advice = *picked;
  }
  mark("advisor.run");
  ImGui::SetCursorPosY(below);
  spacing(6);
  const bool is_stale = workspace.advice->about != about->run.id || workspace.advice->made_for != workspace.version;
  if (is_stale && !commands.data.advice) commands.data.advice = about->run.id;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float side = std::clamp(room.x * 0.3f, px(240), px(420));
  ImGui::BeginChild("##list", ImVec2(room.x - side - gap, 0));
  if (workspace.advice->about == about->run.id) {
    const std::vector<Advice>& list = workspace.advice->list;
    if (!is_over(about->run.status)) {
      empty_state(about->run.name + " isn't over", "Advice on it appears here when it has ended.");
    } else {
      const std::size_t next = next_of(list);
      draw_answer(workspace, *about, next, commands);
      for (std::size_t i = 0; i < list.size(); ++i)
        if (i != next) draw_advice(workspace, list[i], *about, i, commands);
    }
  }
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  begin_card("##held", ImVec2(0, 0), true);
  if (!workspace.advice->past.empty()) {
    draw_past_predictions(workspace.advice->past);
    spacing(12);
  }
  draw_outcomes(workspace, commands);
  end_card();
}

}  // namespace

Panel panels::advisor() {
  return {.id = "advisor", .title = "Advisor", .draw = draw};
}

}  // namespace stepladder
