// Advisor: why the current run's step takes its time and what the next change would buy, in two sentences with one
// button; beneath them the kinds of work, and the other changes by their gain. A click on one puts it into the answer.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/commands/run_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/commands/window_commands.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/models/advice_reader.h"
#include "app/desktop/operator_bars.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/advice_view.h"
#include "app/launch/noise_runs.h"
#include "app/panels/past_predictions.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

struct AdvisorState {
  RunId about = 0;
  std::string picked;  // the title of the change that the answer is about; empty: the first
};

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

bool is_ours(const RunEntry& entry) {
  return entry.run.source == "launched";
}

bool is_loss(const ExpectedGain& gain) {
  return gain.known() && gain.high < 1;
}

bool is_gain(const Advice& advice) {
  return advice.kind == AdviceKind::speed && advice.gain.known() && !is_loss(advice.gain);
}

// What makes the run's own numbers doubtful; null: nothing.
const Advice* doubt_in(const std::vector<Advice>& list) {
  const auto found = std::ranges::find_if(
      list, [](const Advice& each) { return each.kind == AdviceKind::trust && each.change == Change::none; });
  return found == list.end() ? nullptr : &*found;
}

// Whether it is something to do: not a doubt, nor that what others did is impossible.
bool is_proposal(const Advice& advice) {
  return advice.gain.answer != RungAnswer::impossible &&
         (advice.kind != AdviceKind::trust || advice.change != Change::none);
}

// Whether the project can train it as a rung on top of the run.
bool can_launch(const Workspace& workspace, const Advice& advice, const RunEntry& about) {
  return is_ours(about) && (!advice.stage.empty() || !advice.values.empty()) && !is_loss(advice.gain) &&
         !workspace.advice->unavailable.contains(advice.stage);
}

// How many runs of each side show the gain, as Launch has it for so many runs; 1 for a gain that isn't known, and 0
// where `most_repeats` show too little.
constexpr std::size_t most_repeats = 10;
std::size_t repeats_for(const Workspace& workspace, const Advice& advice, const RunEntry& about) {
  const ExpectedGain& gain = advice.gain;
  if (!gain.known()) return 1;
  const RunSpread spread = expected_spread(about.run.device, about.run.hardware, workspace.hardware);
  if (!spread.known()) return 1;
  const bool is_bound = gain.source == GainSource::arithmetic;
  return runs_to_see((is_bound ? gain.high : std::sqrt(gain.low * gain.high)) - 1, spread, most_repeats);
}

// Whether a ladder of it can be launched, and can show something.
bool is_worth_a_ladder(const Workspace& workspace, const Advice& advice, const RunEntry& about) {
  return can_launch(workspace, advice, about) && repeats_for(workspace, advice, about) > 0;
}

// Whether repeats of the run's own ladder would settle what it says of the change.
const RunEntry* open_rung(const Workspace& workspace, const Advice& advice, const RunEntry& about) {
  const std::optional<RungAnswer>& answer = advice.gain.answer;
  const bool is_open = answer == RungAnswer::cannot_tell || answer == RungAnswer::faster_once;
  const RunEntry* rung = is_open && is_ours(about) ? workspace.find(advice.gain.measured) : nullptr;
  return rung && rung->run.ladder && rung->run.ladder == about.run.ladder ? rung : nullptr;
}

// The change that the answer is about: the picked one, else a problem with the run's numbers, the first gain that can
// be launched, the first change that can be, the first one.
const Advice* answered(const AdvisorState& state, const Workspace& workspace, const RunEntry& about) {
  const std::vector<Advice>& list = workspace.advice->list;
  if (list.empty()) return nullptr;
  if (const auto picked = std::ranges::find(list, state.picked, &Advice::title); picked != list.end()) return &*picked;
  if (list.front().kind == AdviceKind::trust && list.front().change != Change::none) return &list.front();
  const auto launchable = [&](const Advice& each) { return is_worth_a_ladder(workspace, each, about); };
  const auto found = [&](auto&& fits) -> const Advice* {
    const auto at = std::ranges::find_if(list, fits);
    return at == list.end() ? nullptr : &*at;
  };
  if (const Advice* gain = found([&](const Advice& each) { return is_gain(each) && launchable(each); })) return gain;
  if (const Advice* gain = found(is_gain)) return gain;
  if (const Advice* open = found(launchable)) return open;
  const auto is_impossible = [](const Advice& each) { return each.gain.answer == RungAnswer::impossible; };
  if (const Advice* impossible = found(is_impossible)) return impossible;
  return &list.front();
}

// "2 runs of 40 steps, about 3 s"
std::string cost_text(const RunEntry& about, std::size_t repeats) {
  const std::string runs = plural(2 * repeats, "run") + " of " + plural(about.run.planned_steps, "step");
  const double ms = about.summary.dt_ms_median;
  if (is_missing(ms)) return runs;
  return runs + ", about " +
         duration_text(
             std::max(1.0, 2e-3 * static_cast<double>(repeats) * ms * static_cast<double>(about.run.planned_steps)));
}

// What a ladder of it would show, as Launch says it for its runs; empty if there is nothing to launch.
std::string seen_text(const Workspace& workspace, const Advice& next, const RunEntry& about) {
  if (!can_launch(workspace, next, about)) return "";
  const RunSpread spread = expected_spread(about.run.device, about.run.hardware, workspace.hardware);
  const std::size_t repeats = repeats_for(workspace, next, about);
  const std::string text = smallest_gain_text(spread, repeats > 0 ? repeats : most_repeats);
  if (text.empty()) return "";
  return " " + text + (repeats > 0 ? "." : ", so it isn't worth a ladder.");
}

// "Matrix products are 84 % of this step's 26.1 ms, between operators 5 %."
std::string why_text(const AdviceView& advice, const RunEntry& about) {
  const double ms = about.summary.dt_ms_median;
  const std::string step = is_missing(ms) ? "this step" : "this step's " + milliseconds_text(ms);
  const StepProfile& profile = advice.times.profile;
  const double whole = step_ms(profile);
  if (profile.steps == 0 || !(whole > 0))
    return "Where " + (is_missing(ms) ? "this step's time goes" : step + " go") +
           " isn't known: " + why_no_profile(about.run) + ".";
  const std::array<KindTimes, 1> times{KindTimes(profile)};
  const std::vector<OperatorKind> kinds = kinds_in(times);
  constexpr double worth_naming = 0.1;
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(kinds.size(), 3); ++i) {
    const double share = times[0].of(kinds[i]) / whole;
    if (i > 0 && share < worth_naming) break;
    const std::string name(to_string(kinds[i]));
    text += i == 0 ? capitalised(name) + ": " + percent_text(share) + " of " + step
                   : ", " + name + " " + percent_text(share);
  }
  return text + ".";
}

// What the change would buy, as one sentence.
std::string next_text(const Workspace& workspace, const Advice* next, const RunEntry& about) {
  if (!next || next->kind == AdviceKind::certainty) {
    if (is_ours(about))
      return std::string("Nothing is left to try here") + (next ? "; a repeat would show how sure it is." : ".");
    return std::string("What a next rung would buy isn't known: this log doesn't say.") +
           (about.run.ladder              ? " Measure its stages here to find out."
            : workspace.advice->has_trace ? ""
                                          : " A trace of the run would say more.");
  }
  if (next->kind == AdviceKind::trust && next->change != Change::none)
    return next->title + ": until then no number of this run can be believed.";
  if (is_loss(next->gain)) return next->title + " costs here: " + gain_words(next->gain) + ".";
  if (next->gain.known())
    return "Next: " + next->title + ", " + gain_words(next->gain) + "." + seen_text(workspace, *next, about);
  if (next->gain.answer == RungAnswer::impossible) return next->title + ": what the next one would buy isn't known.";
  if (next->gain.answer == RungAnswer::cannot_tell) return next->title + " was tried, and its ladder can't tell.";
  if (next->kind == AdviceKind::trust) return next->title + ", and so is what follows from its numbers.";
  if (next->kind == AdviceKind::stability) return next->title + " first.";
  return "What " + next->title + " would buy isn't known." + seen_text(workspace, *next, about);
}

// The one button, if the project can do something about it, and what it costs.
void draw_action(const Workspace& workspace, const Advice* next, const RunEntry& about, Commands& commands) {
  const auto button = [&](const char* label, const std::string& tooltip) {
    begin_change(workspace);
    const bool is_pressed = primary_button(label, true, "advisor.action");
    end_change(workspace);
    if (workspace.read_only.empty()) wrapped_tooltip(tooltip, 360);
    return is_pressed;
  };
  const RunEntry* rung = next ? open_rung(workspace, *next, about) : nullptr;
  if (rung) {
    if (button("Verify gain", "Repeats this rung and the one that it stands on in turns, until its ladder can tell"))
      commands.push_back(ConfirmSpeedup{*rung->run.ladder, next->gain.over, rung->run.rung});
  } else if (next && is_worth_a_ladder(workspace, *next, about)) {
    const std::string words = next->stage.empty() ? change_text(*next) : next->stage;
    const std::size_t repeats = repeats_for(workspace, *next, about);
    ProposeStage proposed{about.run.id, rung_of(*next), words, static_cast<int>(repeats)};
    if (button("Launch it", "Trains this run's recipe and then the same with " + words)) {
      proposed.starts = true;
      commands.push_back(proposed);
    }
    same_line(8);
    if (quiet_button("Edit", "advisor.edit")) commands.push_back(proposed);
    wrapped_tooltip("Fills Launch with it, to change something first", 360);
    same_line(12);
    ImGui::AlignTextToFramePadding();
    text_quiet(cost_text(about, repeats));
  } else if (next && is_ours(about) && (next->change == Change::repeat || next->kind == AdviceKind::trust) &&
             next->change != Change::wait_for_device && next->change != Change::check_peak) {
    if (button("Repeat run", "Trains the same recipe again"))
      commands.push_back(Repeat{{about.run.id}, next->change == Change::repeat ? 2 : 1});
  } else if (!is_ours(about) && about.run.ladder) {
    if (button("Reproduce here", "Fills Launch with the stages of this ladder, in sizes that fit this machine"))
      commands.push_back(ProposeLadder{*about.run.ladder});
  } else if (!is_ours(about) && !workspace.advice->has_trace) {
    if (button("Import a trace of it", "It says where the step's time goes, and predicts what stages would buy"))
      commands.push_back(ShowPanel{"profile"});
  }
}

void draw_answer(const Workspace& workspace, const Advice* next, const RunEntry& about, Commands& commands) {
  begin_tall_card("##answer");
  ImGui::PushTextWrapPos(std::min(ImGui::GetContentRegionAvail().x, px(1100)));
  text_in(in_print(why_text(*workspace.advice, about)), fonts().semibold, 17);
  if (!workspace.advice->levers.empty()) text_quiet(in_print(workspace.advice->levers));
  text_in(in_print(next_text(workspace, next, about)), fonts().semibold, 17);
  mark("advisor.answer");
  if (next) {
    const bool is_about_repeats = next->kind == AdviceKind::certainty && !is_ours(about);  // which nobody can do here
    const auto why = workspace.advice->unavailable.find(next->stage);
    const bool is_unavailable = why != workspace.advice->unavailable.end();
    const std::string change = next->stage.empty() ? change_text(*next) : "";
    if (!is_about_repeats)
      text_quiet(in_print(next->why + (change.empty() ? "" : " " + change + ".") +
                          (next->risk.empty() ? "" : " Risk: " + next->risk + ".") +
                          (is_unavailable ? " Not here: " + why->second + "." : "")));
  }
  if (const Advice* doubt = doubt_in(workspace.advice->list); doubt && doubt != next) {
    text_toned_wrapped(doubt->title + ".", Tone::warning);
    text_quiet(in_print(doubt->why));
    mark("advisor.doubt");
  }
  ImGui::PopTextWrapPos();
  spacing(4);
  draw_action(workspace, next, about, commands);
  end_card();
}

void draw_times(const Workspace& workspace, const RunEntry& about, Commands& commands) {
  const AdviceView& advice = *workspace.advice;
  text_strong("Where the time goes");
  spacing(2);
  if (advice.times.profile.steps > 0) {
    draw_operator_bars(advice.times, palette().accent, nullptr, false);
    spacing(2);
    text_quiet_wrapped(in_print(fit_text(advice.times)));
  } else {
    text_quiet_wrapped("A trace of the run says it.");
  }
  if (!advice.has_trace && can_trace(about.run)) {
    spacing(4);
    ImGui::Dummy(ImVec2(ImGui::GetContentRegionAvail().x, 0));  // so that the button begins a line
    trace_button(workspace, about.run, "advisor.trace", commands);
    text_quiet_wrapped("A trace also predicts what each change would buy.");
  }
  const auto is_predicted = [](const Advice& each) { return each.gain.source == GainSource::prediction; };
  if (advice.past.empty() || std::ranges::none_of(advice.list, is_predicted)) return;
  spacing(10);
  draw_past_predictions(advice.past);
}

// The range of factors that the bars show: all known gains, and 1.
Interval range_of(const std::vector<Advice>& list) {
  Interval range{0.95, 1.25};
  for (const Advice& each : list) {
    if (!each.gain.known()) continue;
    range.low = std::min(range.low, each.gain.low * 0.97);
    range.high = std::max(range.high, each.gain.high * 1.03);
  }
  return range;
}

// The interval on an axis that all rows share, with a line at 1 x.
void draw_interval(const ExpectedGain& gain, const Interval& range, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(8);
  const auto place = [&](double factor) {
    const double share = std::log(factor / range.low) / std::log(range.high / range.low);
    return at.x + width * static_cast<float>(std::clamp(share, 0.0, 1.0));
  };
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().line, 0.6f), px(3));
  const bool is_measured = gain.source == GainSource::own_measurement;
  const ImVec4 colour = is_loss(gain) ? palette().bad : is_measured ? palette().good : palette().accent;
  draw->AddRectFilled(ImVec2(place(gain.low) - px(1), at.y), ImVec2(place(gain.high) + px(1), at.y + height),
                      u32(colour, is_measured ? 0.9f : 0.55f), px(3));
  draw->AddLine(ImVec2(place(1), at.y - px(3)), ImVec2(place(1), at.y + height + px(3)), u32(palette().quiet));
  ImGui::Dummy(ImVec2(width, height));
}

void draw_change(const Advice& advice, bool is_answered, const Interval* range, std::size_t place,
                 AdvisorState& state) {
  ImGui::PushID(static_cast<int>(place));
  const float height = px(46);
  ImGui::TableNextRow(0, height);
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorPos();
  const ImGuiSelectableFlags whole_row = ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap;
  if (ImGui::Selectable("##row", is_answered, whole_row, ImVec2(0, height - px(8)))) state.picked = advice.title;
  mark("advisor.change." + std::to_string(place));
  wrapped_tooltip(in_print(advice.why), 420);
  ImGui::SetCursorPos(ImVec2(at.x + px(6), at.y));
  text_cut(advice.title, ImGui::GetContentRegionAvail().x, palette().text, fonts().semibold, text_size);
  ImGui::SetCursorPosX(at.x + px(6));
  const bool is_problem = advice.kind == AdviceKind::trust || advice.kind == AdviceKind::stability;
  text_cut(in_print(advice.why), ImGui::GetContentRegionAvail().x,
           is_problem ? tone_colour(advice.kind == AdviceKind::trust ? Tone::warning : Tone::bad) : palette().quiet,
           fonts().regular, small_size);
  const ExpectedGain& gain = advice.gain;
  if (range) ImGui::TableNextColumn();
  if (range && gain.known()) {
    text_in(in_print(range_words(gain)), fonts().semibold, text_size);
    draw_interval(gain, *range, ImGui::GetContentRegionAvail().x - px(12));
  }
  ImGui::TableNextColumn();
  const bool is_speed = advice.kind == AdviceKind::speed || advice.kind == AdviceKind::open;
  if (gain.answer) {
    pill(std::string(answer_word(*gain.answer)), tone_of(*gain.answer));
  } else if (gain.known()) {
    text_quiet(gain.source == GainSource::prediction           ? "by its trace"
               : gain.source == GainSource::measured_elsewhere ? "elsewhere"
               : gain.source == GainSource::arithmetic         ? "by arithmetic"
                                                               : "several ladders");
  } else if (is_speed) {
    text_quiet(gain.needs_trace ? "unknown, no trace" : "unknown");
  }
  ImGui::PopID();
}

void draw_changes(AdvisorState& state, const Workspace& workspace, const Advice* next) {
  const std::vector<Advice>& list = workspace.advice->list;
  text_strong("What the next change would buy");
  for (const std::string& note : workspace.advice->notes) text_quiet_wrapped(in_print(note));
  spacing(4);
  const bool is_wide = ImGui::GetContentRegionAvail().x > px(560);
  const Interval range = range_of(list);
  const bool has_gains = std::ranges::any_of(list, [](const Advice& each) { return each.gain.known(); });
  const int columns = has_gains ? 3 : 2;
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_NoSavedSettings;
  if (ImGui::BeginTable(table_id("##changes", columns).c_str(), columns, flags)) {
    ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch);
    if (has_gains) ImGui::TableSetupColumn("gain", ImGuiTableColumnFlags_WidthFixed, px(is_wide ? 220 : 130));
    ImGui::TableSetupColumn("by", ImGuiTableColumnFlags_WidthFixed, px(130));
    std::size_t place = 0;
    for (const Advice& each : list)
      if (is_proposal(each)) draw_change(each, &each == next, has_gains ? &range : nullptr, place++, state);
    ImGui::EndTable();
  }
}

void draw(AdvisorState& state, const Workspace& workspace, Commands& commands) {
  const float top = ImGui::GetCursorPosY();
  text_title("Advisor");
  text_quiet("Why a step takes its time, and what the next change would buy");
  const RunEntry* about = workspace.current_run();
  if (!about && !workspace.traces.empty()) {
    constexpr std::array open{EmptyButton{.label = "Open Profile", .anchor = "advisor.profile", .is_main = true}};
    if (empty_state("No run yet, only a trace",
                    "Profile shows where the trace's step spends its time. Attach the trace to a run there, and advice "
                    "on that run appears here.",
                    open) == 0)
      commands.push_back(ShowPanel{"profile"});
    return;
  }
  if (!about) return start_here(workspace, commands, "No run yet. Advice on a run appears here.");
  if (std::exchange(state.about, about->run.id) != about->run.id) state.picked.clear();
  const bool is_stale = workspace.advice->about != about->run.id || workspace.advice->made_for != workspace.version;
  if (is_stale && !commands.data.advice) commands.data.advice = about->run.id;
  const float below = ImGui::GetCursorPosY();
  const float picker = px(320);
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
  if (workspace.advice->about != about->run.id) return text_quiet("Judging the ladders of this hardware...");
  const Advice* next = answered(state, workspace, *about);
  draw_answer(workspace, next, *about, commands);
  gap(14);
  // A card that has nothing to add to the answer isn't there.
  const bool has_times = workspace.advice->times.profile.steps > 0 || can_trace(about->run);
  const bool has_changes = std::ranges::count_if(workspace.advice->list, is_proposal) > 1;
  const float room = ImGui::GetContentRegionAvail().x;
  if (has_times) {
    begin_card("##times", ImVec2(has_changes ? room * 0.36f : 0, 0), true);
    draw_times(workspace, *about, commands);
    end_card();
  }
  if (!has_changes) return;
  if (has_times) same_line(14);
  begin_card("##changes", ImVec2(0, 0), true);
  draw_changes(state, workspace, next);
  end_card();
}

}  // namespace

Panel panels::advisor() {
  const auto state = std::make_shared<AdvisorState>();
  return {.id = "advisor", .title = "Advisor", .draw = [state](const Workspace& workspace, Commands& commands) {
            draw(*state, workspace, commands);
          }};
}

}  // namespace stepladder
