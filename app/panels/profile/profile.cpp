// Profile: where a step's time goes, slice by slice, and why another step is faster.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/import_commands.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/operator_bars.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/profile/profile_state.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/parts.h"
#include "app/panels/profile/passes.h"
#include "app/profile/example_traces.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr const char* snippet =
    "from torch.profiler import profile, schedule\n"
    "\n"
    "with profile(schedule=schedule(wait=1, warmup=2, active=3), record_shapes=True,\n"
    "             on_trace_ready=lambda p: p.export_chrome_trace(\"trace.json.gz\")) as profiler:\n"
    "    for batch in batches:\n"
    "        step(batch)\n"
    "        profiler.step()\n";

// The profile of the first of these runs that has one: a trace before timed operators, but one that may explain the
// run's speed before one that may not.
ProfileSide side_of(const ProfileView& view, const std::vector<RunId>& runs) {
  for (const bool may_be_doubtful : {false, true}) {
    for (const RunId run : runs) {
      for (const ProfileSource& source : view.sources) {
        if (source.run == run && (may_be_doubtful || !source.is_doubtful)) return source.side;
      }
    }
  }
  return {};
}

// Says how to get a profile of a rung that has none.
std::string missing_side(const Workspace& workspace, const std::vector<RunId>& runs) {
  const RunEntry* entry = runs.empty() ? nullptr : workspace.find(runs.front());
  if (!entry) return "A rung has no profile.";
  const std::string id = std::to_string(entry->run.id);
  const std::string reason = entry->run.source == "launched" ? " (" + why_no_profile(entry->run) + ")" : "";
  return entry->run.name + ", run " + id + ", has no profile" + reason +
         ". Take a trace of it with PyTorch's profiler and add it with Import trace.";
}

// Shows the difference that a click on a factor asked for, or says why there is none.
void explain(ProfilePanelState& state, const Workspace& workspace, const ProfileView& view) {
  const SpeedupToExplain explained = *std::exchange(state.to_explain, std::nullopt);
  state.question.before = side_of(view, explained.before);
  state.question.after = side_of(view, explained.after);
  const bool has_before = state.question.before.kind != ProfileSide::Kind::none;
  const bool has_after = state.question.after.kind != ProfileSide::Kind::none;
  if (!has_after) std::swap(state.question.before, state.question.after);
  state.message.clear();
  if (!has_before) state.message += missing_side(workspace, explained.before);
  if (!has_after) state.message += (has_before ? "" : "\n") + missing_side(workspace, explained.after);
  if (has_before != has_after) state.message += "\nBelow is the other rung's profile alone.";
  state.tab = ProfileTab::difference;
  state.subject = ProfileSubject::steps;
}

// An imported trace is shown; a second one is compared with the first if both are alike. A pair stays as it is.
void take_import(ProfilePanelState& state, const Workspace& workspace, const ProfileView& view,
                 const ProfileSource& second) {
  const bool begins_pair = std::exchange(state.pair_comes, false);
  if (!begins_pair && state.question.before.kind != ProfileSide::Kind::none) return;
  const ProfileSource* const first = begins_pair ? nullptr : source_of(view, state.question.after);
  if (first == &second) return;
  const bool are_alike = first && unlike_text(first->facts, second.facts, workspace.hardware).empty();
  state.question.before = are_alike ? state.question.after : ProfileSide{};
  state.question.after = second.side;
  state.message.clear();
  state.subject = ProfileSubject::steps;
}

// Chooses the profiles to show: an imported one, those of a factor that was clicked, or else the newest.
void follow(ProfilePanelState& state, const Workspace& workspace, const ProfileView& view, Commands& commands) {
  const ProfileQuestion before = state.question;
  const std::vector<std::int64_t>& imported = workspace.profile_state->imported;
  for (std::size_t i = state.seen_imports; i < imported.size(); ++i) {
    const ProfileSource* const source = source_of(view, {.kind = ProfileSide::Kind::trace, .id = imported[i]});
    if (!source) continue;  // the list in which it stands comes later
    take_import(state, workspace, view, *source);
    state.seen_imports = i + 1;
  }
  if (state.to_explain) explain(state, workspace, view);
  // The event may come before the list in which the trace stands.
  if (const ProfileSide wanted{.kind = ProfileSide::Kind::trace, .id = state.to_show.value_or(0)};
      state.to_show && source_of(view, wanted)) {
    state.to_show.reset();
    state.question.before = {};
    state.question.others.clear();
    state.question.after = wanted;
    state.message.clear();
    state.subject = ProfileSubject::steps;
  }
  // Another program may have removed what is shown.
  for (ProfileSide* side : {&state.question.before, &state.question.after}) {
    if (side->kind != ProfileSide::Kind::none && !source_of(view, *side)) *side = {};
  }
  std::erase_if(state.question.others, [&](const ProfileSide& side) { return !source_of(view, side); });
  if (state.question.after.kind == ProfileSide::Kind::none) {
    std::swap(state.question.before, state.question.after);
    if (state.question.after.kind == ProfileSide::Kind::none && !view.sources.empty() && state.message.empty())
      state.question.after = view.sources.front().side;
  }
  if (!(state.question == before)) ask(state, commands);
}

// The sums of one stretch of time as a profile has them.
KindBars range_bars(const ShownProfile& shown, const TimeRange& range) {
  const KindArray ms = shown.sums->in(range);
  KindBars bars{KindTimes(ms), 0, "ms"};
  for (const double each : ms) bars.step_ms += each;
  return bars;
}

void draw_range_kinds(ProfilePanelState& state, const ProfileView& view, const TimeRange& range) {
  text_strong("Kinds of work in " + slice_time_text(range.length()));
  mark("profile.range");
  same_line(10);
  if (quiet_button("Whole step", "profile.range.clear")) return state.icicle.clear_range();
  const ShownProfile* const before = view.before && view.before->sums ? &*view.before : nullptr;
  if (!view.after->sums) {
    if (before) draw_operator_bars(range_bars(*before, range), kind_colour, nullptr, false);
    return;
  }
  const KindBars after = range_bars(*view.after, range);
  text_quiet("from " + slice_time_text(range.from_ns) + " to " + slice_time_text(range.to_ns) +
             (before ? "; grey: " + view.before->name : ""));
  if (before) {
    const KindBars other = range_bars(*before, range);
    draw_operator_bars(after, kind_colour, &other, false);  // of one step each, so it may be noise
  } else {
    draw_operator_bars(after, kind_colour, nullptr, false);
  }
}

void draw_kinds(ProfilePanelState& state, const ProfileView& view) {
  if (state.icicle.range() && (view.after->sums || (view.before && view.before->sums)))
    return draw_range_kinds(state, view, *state.icicle.range());
  text_strong("Kinds of work");
  const KindBars after{view.after->kinds, view.after->step_ms, unit_of(*view.after)};
  if (view.before) {
    const KindBars before{view.before->kinds, view.before->step_ms, unit_of(*view.before)};
    text_cut("grey: " + view.before->name, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular,
             small_size, Cut::middle);
    draw_operator_bars(after, kind_colour, &before, view.is_verdict());
  } else {
    const bool is_run = view.after->side.kind == ProfileSide::Kind::run;
    const char* const what = !view.after->has_steps  ? "the whole trace, "
                             : view.after->is_scaled ? "scaled to the median step of "
                             : is_run                ? "a mean profiled step of "
                                                     : "a mean step of ";
    text_quiet(what + milliseconds_text(view.after->step_ms));
    draw_operator_bars(after, kind_colour, nullptr, false);
  }
}

// What is chosen, and how much of the step it takes.
void draw_chosen(const ProfilePanelState& state, const ProfileView& view) {
  const SliceChoice& chosen = state.icicle.chosen();
  if (chosen.title.empty()) return;
  std::string text = "chosen: " + chosen.title;
  double ms = 0;
  for (const TracedOperator& row : view.after->operators)
    ms += (chosen.kind ? kind_of(row) == *chosen.kind : chosen.has(row.time.name)) ? row.time.self_ms : 0;
  if (ms > 0) text += ", " + milliseconds_text(ms) + " a step (" + percent_text(ms / view.after->step_ms) + ")";
  // On the line of the tabs, so that the table doesn't move beneath the mouse.
  same_line(14);
  ImGui::AlignTextToFramePadding();
  text_cut(text, std::max(ImGui::GetContentRegionAvail().x, px(40)), palette().accent, fonts().regular, small_size);
  mark("profile.chosen");
}

void draw_tabs(ProfilePanelState& state, const ProfileView& view, const Workspace& workspace, Commands& commands) {
  struct Entry {
    const char* name;
    ProfileTab tab;
    bool is_there;
  };
  const std::array entries{Entry{"Difference", ProfileTab::difference, view.difference.has_value()},
                           Entry{"Operators", ProfileTab::operators, true},
                           Entry{"What next", ProfileTab::stages, !view.after->next.largest.empty()},
                           Entry{"Parts of the model", ProfileTab::anatomy, !view.after->anatomy.empty()},
                           Entry{"Roofline", ProfileTab::roofline, !view.after->rooflines.empty()},
                           Entry{"Ranks", ProfileTab::ranks, !view.after->ranks.rows.empty()},
                           Entry{"Several", ProfileTab::several, !view.several_names.empty()}};
  const auto chosen =
      std::ranges::find_if(entries, [&](const Entry& entry) { return entry.tab == state.tab && entry.is_there; });
  const ProfileTab tab = chosen == entries.end() ? ProfileTab::operators : state.tab;
  bool is_first = true;
  for (const Entry& entry : entries) {
    if (!entry.is_there) continue;
    if (!std::exchange(is_first, false)) flow_for(ImGui::CalcTextSize(entry.name).x + px(20));
    if (chip(entry.name, entry.tab == tab)) state.tab = entry.tab;
    mark("profile.tab." + std::to_string(static_cast<int>(entry.tab)));
  }
  draw_chosen(state, view);
  gap(10);
  TableUse use{.sort = state.sort(tab), .chosen = state.icicle.chosen(), .clicked = {}};
  use.scrolls = std::exchange(state.seen_clicks, state.icicle.clicks()) != state.icicle.clicks();
  if (tab == ProfileTab::difference)
    draw_difference_table(view, state.found, use);
  else if (tab == ProfileTab::operators)
    draw_operator_table(*view.after, state.found, use);
  else if (tab == ProfileTab::roofline)
    draw_roofline_table(*view.after, use);
  else if (tab == ProfileTab::stages)
    draw_what_next(view.after->next, workspace, commands);
  else if (tab == ProfileTab::ranks)
    draw_rank_table(view.after->ranks, use);
  else if (tab == ProfileTab::several)
    draw_several_table(view, state.found, use);
  else
    draw_anatomy_table(view, state.by_block, use);
  if (use.clicked) state.icicle.choose(*use.clicked);
  mark("profile.table");
}

void draw_body(ProfilePanelState& state, const ProfileView& view, const Workspace& workspace, Commands& commands) {
  const bool has_slices = view.after->slices || (view.before && view.before->slices);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(14);
  const float lower = has_slices ? std::max(px(240), room.y * (view.before ? 0.4f : 0.44f)) : room.y;
  if (has_slices) {
    const ShownProfile* before = view.before ? &*view.before : nullptr;
    const float frame = 2 * px(14) + ImGui::GetTextLineHeightWithSpacing() + px(4);
    const float most = std::max(px(220), room.y - lower - space);
    begin_card("##slices", ImVec2(0, std::clamp(Icicle::height(before, *view.after) + frame, px(150), most)));
    text_cut(
        "Wheel or W S: zoom; drag or A D: move; Shift+drag, or drag in the ruler: measure; F: fit; Home or double "
        "click: all",
        ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    state.icicle.draw(before, *view.after, ImGui::GetContentRegionAvail().y);
    end_card();
    gap(14);
  } else {
    text_quiet_wrapped(view.after->side.kind == ProfileSide::Kind::run
                           ? "A run's operators are timed as sums, so there are no slices to draw."
                           : "This trace was imported by a version that kept no slices: import it again to see them.");
    gap(10);
  }
  const float bars = std::clamp(room.x * 0.32f, px(280), px(440));
  begin_card("##kinds", ImVec2(bars, 0), true);
  draw_kinds(state, view);
  end_card();
  mark("profile.kinds");
  ImGui::SameLine(0, space);
  begin_card("##tables", ImVec2(0, 0));
  draw_tabs(state, view, workspace, commands);
  end_card();
}

void draw_empty(const ProfilePanelState& state, const Workspace& workspace, Commands& commands) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = std::min(px(760), room.x);
  ImGui::SetCursorPos(ImVec2(ImGui::GetCursorPosX() + (room.x - width) / 2,
                             ImGui::GetCursorPosY() + std::max(0.0f, room.y / 2 - px(210))));
  ImGui::BeginGroup();
  text_strong("No profiles yet");
  if (!state.message.empty()) {
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + width);
    text_sentence(state.message, Tone::warning);
    ImGui::PopTextWrapPos();
    mark("profile.message");
  }
  gap(6);
  begin_card("##snippet", ImVec2(width, px(246)));
  text_sentence(
      "Drop a trace of PyTorch's profiler (.json, .json.gz) or of Nsight Systems (nsys export --type sqlite) on this "
      "window, or press Import trace. Its step appears here, slice by slice; a second trace is compared with the "
      "first. Runs trained on a CPU here have their operators timed, and "
      "appear too.");
  gap(12);
  text_quiet("In your training script:");
  text_in(snippet, fonts().mono, 13);
  gap(6);
  if (quiet_button("Copy", "profile.copy")) commands.push_back(CopyText{snippet, "the snippet"});
  end_card();
  gap(8);
  if (quiet_button(example_traces_title, "profile.example")) commands.push_back(OpenExampleTraces{});
  same_line(10);
  ImGui::AlignTextToFramePadding();
  text_quiet("Two traces of modded-nanogpt on 8 H100: a step before and after a record's change");
  draw_progress(workspace, commands);
  ImGui::EndGroup();
  mark("profile.empty");
}

void draw_steps(ProfilePanelState& state, const Workspace& workspace, const std::shared_ptr<const ProfileView>& shown,
                Commands& commands) {
  const ProfileView& view = *shown;
  if (view.sources.empty() && view.problem.empty()) return draw_empty(state, workspace, commands);
  draw_question(state, view, commands);
  draw_progress(workspace, commands);
  if (!state.message.empty()) {
    text_sentence(state.message, Tone::warning);
    mark("profile.message");
  }
  for (const std::optional<ShownProfile>* shown_side : {&view.before, &view.after}) {
    if (*shown_side && !(*shown_side)->doubt.empty())
      text_sentence((*shown_side)->name + ": " + (*shown_side)->doubt, Tone::warning);
    if (*shown_side && !(*shown_side)->fit.empty()) {
      text_quiet_wrapped((view.before ? (*shown_side)->name + ": " : "") + (*shown_side)->fit);
      mark("profile.fit");
    }
  }
  const bool is_same = view.before && view.after && view.before->side == view.after->side;
  if (is_same) {
    text_sentence("Both sides are the same step of the same profile, so nothing can differ: choose another one.",
                  Tone::warning);
    mark("profile.same");
  }
  if (!view.unlike.empty()) {
    text_sentence(view.unlike, Tone::warning);
    mark("profile.unlike");
  }
  if (view.after) draw_owner(*view.after, commands);
  gap(10);
  if (!(view.asked == state.question)) commands.data.next_frame = true;
  if (!view.problem.empty()) {
    text_toned("A profile can't be shown", Tone::bad);
    text_sentence(view.problem);
    mark("profile.problem");
    if (!view.after) return;
  }
  state.found.update(shown, state.search.data(), state.sort(ProfileTab::operators), state.sort(ProfileTab::difference),
                     state.sort(ProfileTab::several));
  if (view.after)
    draw_body(state, view, workspace, commands);
  else if (view.asked == state.question && state.message.empty())
    empty_state("No profile chosen", "Choose one above.");
}

void draw(ProfilePanelState& state, const Workspace& workspace, Commands& commands) {
  if (!state.asked) ask(state, commands);
  take_chosen_files(state, commands);
  const std::shared_ptr<const ProfileView> view = workspace.profile_state->view;
  if (view) follow(state, workspace, *view, commands);
  draw_head(state, view.get(), workspace.read_only.empty());
  gap(14);
  if (!view) {
    commands.data.next_frame = true;
    return;
  }
  if (subject_of(state, *view) == ProfileSubject::steps) return draw_steps(state, workspace, view, commands);
  draw_progress(workspace, commands);
  if (draw_passes(state.question, *view, workspace, commands)) ask(state, commands);
}

nlohmann::json side_json(const ProfileSide& side) {
  return {{"kind", static_cast<int>(side.kind)}, {"id", side.id}};
}

ProfileSide side_from(const nlohmann::json& json) {
  ProfileSide side;
  if (!json.is_object() || !json.contains("kind") || !json.contains("id") || !json["kind"].is_number_integer() ||
      !json["id"].is_number_integer())
    return side;
  const auto kind = json["kind"].get<std::int64_t>();
  if (kind < 1 || kind > 2) return side;
  side.kind = static_cast<ProfileSide::Kind>(kind);
  side.id = json["id"].get<std::int64_t>();
  return side;
}

}  // namespace

Panel panels::profile() {
  const auto state = std::make_shared<ProfilePanelState>();
  return {.id = "profile",
          .title = "Profile",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .receive =
              [state](const PanelEvent& event) {
                if (const auto* speedup = event.as<SpeedupToExplain>()) state->to_explain = *speedup;
                if (const auto* trace = event.as<TraceToShow>()) state->to_show = trace->trace;
                if (const auto* pair = event.as<PairToImport>(); pair && pair->is_example)
                  state->tab = ProfileTab::difference;
                if (const auto* pair = event.as<PairToImport>())
                  state->pair_comes |= pair->is_example || state->question.before.kind == ProfileSide::Kind::none;
              },
          .view =
              [state](const Workspace&) {
                return nlohmann::json{{"before", side_json(state->question.before)},
                                      {"after", side_json(state->question.after)},
                                      {"passes", state->question.passes},
                                      {"passes_before", state->question.passes_before},
                                      {"shows_passes", state->subject == ProfileSubject::passes},
                                      {"search", std::string(state->search.data())},
                                      {"tab", static_cast<int>(state->tab)}};
              },
          .show_view =
              [state](const nlohmann::json& json, const Workspace&) {
                if (!json.is_object()) return;
                if (json.contains("before")) state->question.before = side_from(json["before"]);
                if (json.contains("after")) state->question.after = side_from(json["after"]);
                const auto number = [&](const char* name) {
                  return json.contains(name) && json[name].is_number_integer() ? json[name].get<std::int64_t>() : 0;
                };
                state->question.passes = number("passes");
                state->question.passes_before = number("passes_before");
                state->subject.reset();
                if (json.contains("shows_passes") && json["shows_passes"].is_boolean())
                  state->subject = json["shows_passes"].get<bool>() ? ProfileSubject::passes : ProfileSubject::steps;
                if (json.contains("tab") && json["tab"].is_number_integer())
                  state->tab = static_cast<ProfileTab>(
                      std::clamp<std::int64_t>(json["tab"].get<std::int64_t>(), 0, profile_tab_count - 1));
                if (json.contains("search") && json["search"].is_string()) {
                  const std::string text = json["search"].get<std::string>().substr(0, state->search.size() - 1);
                  std::snprintf(state->search.data(), state->search.size(), "%s", text.c_str());
                }
                state->asked = false;
              },
          .least_width = 700,
          .least_height = 560};
}

}  // namespace stepladder
