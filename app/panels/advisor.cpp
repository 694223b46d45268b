// Advisor: the next stages to try for a run, with evidence from its own measurements; and the outcome of earlier
// advice.
#include <imgui.h>
#include <imgui_internal.h>  // whether the line continues

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/frames/frames.h"
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

// A bar from 1 x to the highest expected gain; the uncertain part is paler.
void draw_gain(const ExpectedGain& gain, const RunEntry& about, std::size_t row, float width, Commands& commands) {
  if (!gain.known()) {
    text_quiet(gain.needs_trace ? "A trace of this run predicts the gain" : "unknown gain");
    if (!gain.needs_trace || about.run.source != "launched") return;
    if (quiet_button("Copy trace command", "advisor.trace." + std::to_string(row)))
      commands.push_back(CopyText{"stepladder profile run " + std::to_string(about.run.id), "The command"});
    return;
  }
  text_strong(in_print(gain.low == gain.high ? factor_text(gain.low)
                                             : factor_text(gain.low) + " to " + factor_text(gain.high)));
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

const RunEntry* advised(const Workspace& workspace) {
  if (const RunEntry* current = workspace.find(workspace.selection.shown_run);
      current && is_over(current->run.status) && current->summary.steps > 0)
    return current;
  // The newest run that was trained here says most about this machine; else the newest with steps.
  const RunEntry* best = nullptr;
  for (const RunEntry& entry : workspace.runs()) {
    if (!is_over(entry.run.status) || entry.summary.steps == 0) continue;
    if (!best || entry.run.source == "launched" || best->run.source != "launched") best = &entry;
  }
  return best;
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
  const bool ours = about.run.source == "launched";
  const std::string change = change_text(advice);
  if (ours && (!advice.stage.empty() || !advice.values.empty())) {
    const std::string words = advice.stage.empty() ? change : advice.stage;
    if (quiet_button(advice.stage.empty() ? "Try values" : "Try stage", "advisor.try." + std::to_string(place)))
      commands.push_back(ProposeStage{about.run.id, rung_of(advice), words});
    ImGui::SetItemTooltip("Fills Launch with this run's recipe plus %s", words.c_str());
    same_line(8);
  } else if (ours && advice.change == Change::repeat) {
    if (quiet_button("Repeat run", "advisor.repeat")) commands.push_back(Repeat{{about.run.id}, 2});
    same_line(8);
  }
  if (!change.empty()) {
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
    draw_gain(advice.gain, about, place, side, commands);
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

void draw(const Workspace& workspace, Commands& commands) {
  const float top = ImGui::GetCursorPosY();
  text_title("Advisor");
  const RunEntry* about = advised(workspace);
  if (!about) {
    text_quiet("Stages worth trying next, from your own measurements");
    return start_here(workspace, commands, "No run yet. Advice on a run appears here.");
  }
  text_quiet("Stages worth trying next, each with its evidence");
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
    if (workspace.advice->list.empty()) {
      empty_state("No further optimisation suggested for " + about->run.name, "Choose another run at the top right.");
    }
    for (std::size_t i = 0; i < workspace.advice->list.size(); ++i)
      draw_advice(workspace, workspace.advice->list[i], *about, i, commands);
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
