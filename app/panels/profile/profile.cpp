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
#include "app/desktop/panel.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/profile/profile_state.h"
#include "app/desktop/profile/profile_view.h"
#include "app/desktop/system/file_dialog.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/icicle.h"
#include "app/panels/profile/passes.h"
#include "app/panels/profile/tables.h"
#include "app/profile/example_traces.h"
#include "app/text/format.h"
#include "storage/by_enum.h"

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

enum class Tab { difference, operators, anatomy, roofline, ranks, several, stages };
constexpr std::size_t tab_count = enum_count<Tab>();
enum class ProfileSubject { steps, passes };

struct State {
  ProfileQuestion question;
  bool asked = false;
  std::size_t seen_imports = 0;
  bool pair_comes = false;                     // the next two imports are compared with each other
  std::optional<SpeedupToExplain> to_explain;  // once the profiles have been read
  std::string message;                         // why an explanation has only one side
  std::array<char, 128> search{};
  std::optional<ProfileSubject> subject;  // none: what there is
  Tab tab = Tab::difference;
  std::array<TableSort, tab_count> sorts;
  bool by_block = false;
  int seen_clicks = 0;                  // of the icicle: its table has scrolled to the chosen row
  std::optional<std::int64_t> to_show;  // a trace, once the profiles have been read
  FoundRows found;

  TableSort& sort(Tab of) { return sorts[static_cast<std::size_t>(of)]; }
  Icicle icicle;
  FileDialog dialog;
};

void ask(State& state, Commands& commands) {
  state.asked = true;
  commands.push_back(ShowProfile{state.question});
}

const ProfileSource* source_of(const ProfileView& view, const ProfileSide& side) {
  for (const ProfileSource& source : view.sources) {
    if (source.side.kind == side.kind && source.side.id == side.id) return &source;
  }
  return nullptr;
}

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
         ". Take a trace of it with PyTorch's profiler and add it: `stepladder profile import FILE --run " + id + "`.";
}

// Shows the difference that a click on a factor asked for, or says why there is none.
void explain(State& state, const Workspace& workspace, const ProfileView& view) {
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
  state.tab = Tab::difference;
  state.subject = ProfileSubject::steps;
}

// An imported trace is shown; a second one is compared with the first if both are alike. A pair stays as it is.
void take_import(State& state, const Workspace& workspace, const ProfileView& view, const ProfileSource& second) {
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
void follow(State& state, const Workspace& workspace, const ProfileView& view, Commands& commands) {
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

ProfileSubject subject_of(const State& state, const ProfileView& view) {
  return state.subject.value_or(view.sources.empty() && !view.all_passes.empty() ? ProfileSubject::passes
                                                                                 : ProfileSubject::steps);
}

// --- head ------------------------------------------------------------------------------------------------------------

void take_chosen_files(State& state, Commands& commands) {
  if (state.dialog.is_active()) commands.data.next_frame = true;
  const std::optional<FileAnswer> answer = state.dialog.take();
  if (!answer) return;
  if (!answer->paths.empty()) commands.push_back(PreviewImport{{.paths = answer->paths}});
  if (!answer->problem.empty()) state.message = answer->problem;
}

void draw_progress(const Workspace& workspace, Commands& commands) {
  if (workspace.profile_state->reading.empty()) return;
  ImGui::AlignTextToFramePadding();
  const ProfileState& import = *workspace.profile_state;
  text_quiet(import.reading + (import.share > 0 ? ": " + percent_text(import.share) : ""));
  mark("profile.progress");
  same_line(10);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetFrameHeight() / 2 - px(3));
  progress_bar(workspace.profile_state->share, px(160));
  same_line(10);
  if (quiet_button("Stop", "profile.stop")) commands.push_back(StopTraceImport{});
}

void draw_head(State& state, const ProfileView* view, bool is_writable) {
  struct Entry {
    const char* name;
    ProfileSubject subject;
    const char* tip;
  };
  constexpr std::array entries{
      Entry{"Steps", ProfileSubject::steps,
            "Steps of training, slice by slice: traces of profilers, and runs trained here"},
      Entry{"Passes", ProfileSubject::passes, "Forward and backward timed call by call: `stepladder profile`"}};
  const ImVec2 start = ImGui::GetCursorPos();
  float room = px(6);
  for (const Entry& entry : entries) room += button_width(entry.name) + px(6);
  const bool shows_passes = view && subject_of(state, *view) == ProfileSubject::passes;
  if (view_head("Profile",
                shows_passes ? "How long a model's forward and backward pass take, call by call"
                             : "Where a step's time goes, slice by slice, and why another step is faster",
                {.label = "Import trace",
                 .anchor = "profile.import",
                 .is_enabled = !state.dialog.is_active() && is_writable,
                 .tooltip = is_writable ? "Of PyTorch's profiler (.json, .json.gz) or of Nsight Systems (nsys export "
                                          "--type sqlite); or drop it on the window"
                                        : "The project is open for reading only"},
                room))
    open_dialog(state.dialog, {.title = "Choose a trace", .kind = FileQuestion::Kind::files});
  if (!view || (view->sources.empty() && view->all_passes.empty())) return;
  const ImVec2 below = ImGui::GetCursorPos();
  ImGui::PushFont(fonts().semibold, text_size);
  const float button = button_width("Import trace");
  ImGui::PopFont();
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - button - room, start.y));
  for (const Entry& entry : entries) {
    if (chip(entry.name, subject_of(state, *view) == entry.subject)) state.subject = entry.subject;
    ImGui::SetItemTooltip("%s", entry.tip);
    mark(std::string("profile.subject.") + std::to_string(static_cast<int>(entry.subject)));
    same_line(6);
  }
  ImGui::SetCursorPos(below);
}

// A small button at the right end of a trace's row in the list. Returns whether it was pressed.
bool remove_button(const ProfileSource& source, ImVec2 corner, float row_width) {
  constexpr const char* word = "Remove";
  ImGui::PushFont(fonts().regular, small_size);
  const float width = button_width(word);
  ImGui::SetCursorPos(ImVec2(corner.x + row_width - width, corner.y + px(7)));
  const bool is_pressed = ImGui::SmallButton(word);
  ImGui::PopFont();
  ImGui::SetItemTooltip("Removes the trace from the project, not its file; Ctrl+Z brings it back");
  mark("profile.remove." + std::to_string(source.side.id));
  return is_pressed;
}

// Chooses further profiles, for the table of several.
bool choose_others(const ProfileView& view, std::vector<ProfileSide>& others, const ProfileQuestion& question) {
  constexpr std::size_t most = 14;
  const std::string label = others.empty() ? "More" : "More (" + std::to_string(others.size()) + ")";
  flow_to(label.c_str());
  if (quiet_button(label.c_str(), "profile.more")) ImGui::OpenPopup("##more");
  ImGui::SetItemTooltip("Puts more than two profiles beside each other in one table");
  popup_at_item();
  if (!ImGui::BeginPopup("##more")) return false;
  bool changed = false;
  text_quiet("Beside these two");
  int number = 0;
  for (const ProfileSource& source : view.sources) {
    const bool is_shown = (source.side.kind == question.after.kind && source.side.id == question.after.id) ||
                          (source.side.kind == question.before.kind && source.side.id == question.before.id);
    if (is_shown) continue;
    const auto known = std::ranges::find(others, source.side);
    bool is_on = known != others.end();
    ImGui::PushID(number);
    ImGui::BeginDisabled(!is_on && others.size() >= most);
    if (ImGui::Checkbox(cut_to(source.name, px(420), Cut::middle).c_str(), &is_on)) {
      is_on ? others.push_back(source.side) : void(others.erase(known));
      changed = true;
    }
    mark("profile.more." + std::to_string(number++));
    ImGui::EndDisabled();
    ImGui::PopID();
  }
  ImGui::EndPopup();
  return changed;
}

// The field of the search, with the place among its hits. Enter shows the next hit, Shift+Enter the one before.
void draw_search(State& state) {
  flow_for(px(160), 12);
  const float width = std::min(ImGui::GetContentRegionAvail().x, px(320));
  ImGui::SetCursorPosX(ImGui::GetContentRegionMax().x - width);
  ImGui::SetNextItemWidth(width);
  bool& keeps_active = ImGui::GetIO().ConfigInputTextEnterKeepActive;
  const bool kept = std::exchange(keeps_active, true);
  ImGui::InputTextWithHint("##search", "Search slices and operators", state.search.data(), state.search.size());
  keeps_active = kept;
  mark("profile.search");
  const bool is_enter = ImGui::IsItemActive() &&
                        (ImGui::IsKeyPressed(ImGuiKey_Enter, true) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, true));
  const ImVec2 high = ImGui::GetItemRectMax(), low = ImGui::GetItemRectMin();
  state.icicle.search(state.search.data());
  if (is_enter && state.search[0] != 0) state.icicle.step_to_hit(!ImGui::GetIO().KeyShift);
  const std::string hits = state.icicle.hits_text();
  if (hits.empty()) {
    ImGui::SetItemTooltip("Enter shows the next match, Shift+Enter the one before");
    return;
  }
  ImGui::PushFont(fonts().regular, small_size);
  const ImVec2 words = ImGui::CalcTextSize(hits.c_str());
  const ImVec2 at(high.x - words.x - px(8), (low.y + high.y - words.y) / 2);
  if (at.x > low.x + px(90)) ImGui::GetWindowDrawList()->AddText(at, u32(palette().quiet), hits.c_str());
  ImGui::PopFont();
  ui_test_anchors::note("profile.hits." + hits, at.x, at.y, high.x, high.y);
}

// Returns whether another one was chosen.
bool choose_source(const char* id, const char* none, const ProfileView& view, ProfileSide& side, float width,
                   Commands& commands) {
  const ProfileSource* chosen = source_of(view, side);
  ImGui::SetNextItemWidth(width);
  bool changed = false;
  if (!ImGui::BeginCombo(id, combo_text(chosen ? chosen->name : none, width).c_str(), ImGuiComboFlags_HeightLargest))
    return false;
  bool takes_first = false;  // Enter does
  const std::string typed = list_search("Search profiles", view.sources.size(), &takes_first);
  bool marks_first = !typed.empty();
  if (typed.empty() && side.kind != ProfileSide::Kind::none && ImGui::Selectable(none)) {
    side = {};
    changed = true;
  }
  const float row = std::max(width, px(400)), button = px(80);
  int number = 0;
  for (const ProfileSource& source : view.sources) {
    ImGui::PushID(number++);
    if (holds(source.name, typed)) {
      const bool is_chosen = &source == chosen;
      const ImVec2 corner = ImGui::GetCursorPos();
      const bool is_first = std::exchange(takes_first, false);
      if (is_first) ImGui::CloseCurrentPopup();
      if ((ImGui::Selectable("##source", is_chosen, ImGuiSelectableFlags_AllowOverlap, ImVec2(row, px(36))) ||
           is_first) &&
          !is_chosen) {
        side = source.side;
        changed = true;
      }
      mark("profile.source." + std::to_string(source.side.id));
      if (std::exchange(marks_first, false)) mark_taken_by_enter();
      const ImVec2 below = ImGui::GetCursorPos();
      if (source.side.kind == ProfileSide::Kind::trace && remove_button(source, corner, row))
        commands.push_back(RemoveTrace{source.side.id});
      ImGui::SetCursorPos(corner);
      ImGui::BeginGroup();
      text_cut(source.name, row - button, palette().text, fonts().regular, text_size, Cut::middle);
      text_cut(source.detail, row - button, palette().quiet, fonts().regular, small_size);
      ImGui::EndGroup();
      ImGui::SetCursorPos(below);
      ImGui::Dummy(ImVec2(0, 0));
    }
    ImGui::PopID();
  }
  ImGui::EndCombo();
  return changed;
}

bool choose_step(const char* id, const std::optional<ShownProfile>& shown, ProfileSide& side) {
  if (!shown || shown->steps.size() < 2) return false;
  std::vector<std::string> words;
  int at = 0;
  const bool has_ranks = shown->steps.front().rank != shown->steps.back().rank;
  for (std::size_t i = 0; i < shown->steps.size(); ++i) {
    const KeptStepName& each = shown->steps[i];
    words.push_back((has_ranks ? "rank " + std::to_string(each.rank) + ", " : "") + "step " +
                    std::to_string(each.step));
    if (each.rank == shown->side.rank && each.step == shown->side.step) at = static_cast<int>(i);
  }
  same_line(6);
  if (!choice(id, "", at, words, px(has_ranks ? 140 : 100))) return false;
  side.rank = shown->steps[static_cast<std::size_t>(at)].rank;
  side.step = shown->steps[static_cast<std::size_t>(at)].step;
  return true;
}

void draw_question(State& state, const ProfileView& view, Commands& commands) {
  const float room = ImGui::GetContentRegionAvail().x;
  // What stands beside the two lists, so that all is on one line if it can be.
  float others = px(8 + 12 + 8 + 12 + 8) + px(160) + ImGui::CalcTextSize("against").x + button_width("Swap");
  if (view.sources.size() > 2) others += px(8) + button_width("More (2)");
  for (const std::optional<ShownProfile>* side : {&view.after, &view.before})
    if (*side && (*side)->steps.size() > 1) others += px(6 + 140);
  const float width = std::clamp((room - others) / 2, px(130), px(420));
  bool changed = choose_source("##after", "No profile", view, state.question.after, width, commands);
  mark("profile.after.source");
  changed |= choose_step("##after_step", view.after, state.question.after);
  same_line(12);
  field_name("against");
  changed |= choose_source("##before", "No other profile", view, state.question.before, width, commands);
  mark("profile.before.source");
  changed |= choose_step("##before_step", view.before, state.question.before);
  if (state.question.before.kind != ProfileSide::Kind::none) {
    same_line(8);
    if (quiet_button("Swap", "profile.swap")) {
      std::swap(state.question.before, state.question.after);
      changed = true;
    }
  }
  if (view.sources.size() > 2 && choose_others(view, state.question.others, state.question)) {
    changed = true;
    if (!state.question.others.empty()) state.tab = Tab::several;
  }
  if (changed) {
    state.message.clear();
    ask(state, commands);
  }
  draw_search(state);  // at the right edge, where the card below ends
}

// The run that the trace is of, or may be of.
void draw_owner(const ShownProfile& shown, Commands& commands) {
  const TraceOwner& owner = shown.owner;
  if (owner.reason.empty() || shown.side.kind != ProfileSide::Kind::trace) return;
  std::vector<RunId> runs = owner.possible;
  if (owner.run) runs = {*owner.run};
  constexpr std::size_t most = 3;
  ImGui::AlignTextToFramePadding();
  text_quiet(shown.name + " isn't attached to a run. " + owner.reason);
  mark("profile.owner");
  for (std::size_t i = 0; i < std::min(runs.size(), most); ++i) {
    const std::string label = "Attach to run " + std::to_string(runs[i]);
    flow_to(label.c_str());
    if (quiet_button(label.c_str(), "profile.attach." + std::to_string(runs[i])))
      commands.push_back(AttachTrace{shown.side.id, runs[i]});
  }
}

// --- body ------------------------------------------------------------------------------------------------------------

// The sums of one stretch of time as a profile has them.
KindBars range_bars(const ShownProfile& shown, const TimeRange& range) {
  const KindArray ms = shown.sums->in(range);
  KindBars bars{KindTimes(ms), 0, "ms"};
  for (const double each : ms) bars.step_ms += each;
  return bars;
}

void draw_range_kinds(State& state, const ProfileView& view, const TimeRange& range) {
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

void draw_kinds(State& state, const ProfileView& view) {
  if (state.icicle.range() && (view.after->sums || (view.before && view.before->sums)))
    return draw_range_kinds(state, view, *state.icicle.range());
  text_strong("Kinds of work");
  const KindBars after{view.after->kinds, view.after->step_ms};
  if (view.before) {
    const KindBars before{view.before->kinds, view.before->step_ms};
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
void draw_chosen(const State& state, const ProfileView& view) {
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

void draw_tabs(State& state, const ProfileView& view) {
  struct Entry {
    const char* name;
    Tab tab;
    bool is_there;
  };
  const std::array entries{Entry{"Difference", Tab::difference, view.difference.has_value()},
                           Entry{"Operators", Tab::operators, true},
                           Entry{"Parts of the model", Tab::anatomy, !view.after->anatomy.empty()},
                           Entry{"Roofline", Tab::roofline, !view.after->rooflines.empty()},
                           Entry{"What next", Tab::stages, !view.after->stages.empty()},
                           Entry{"Ranks", Tab::ranks, !view.after->ranks.rows.empty()},
                           Entry{"Several", Tab::several, !view.several_names.empty()}};
  const auto chosen =
      std::ranges::find_if(entries, [&](const Entry& entry) { return entry.tab == state.tab && entry.is_there; });
  const Tab tab = chosen == entries.end() ? Tab::operators : state.tab;
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
  if (tab == Tab::difference)
    draw_difference_table(view, state.found, use);
  else if (tab == Tab::operators)
    draw_operator_table(*view.after, state.found, use);
  else if (tab == Tab::roofline)
    draw_roofline_table(*view.after, use);
  else if (tab == Tab::stages)
    draw_stage_table(*view.after, use);
  else if (tab == Tab::ranks)
    draw_rank_table(view.after->ranks, use);
  else if (tab == Tab::several)
    draw_several_table(view, state.found, use);
  else
    draw_anatomy_table(view, state.by_block, use);
  if (use.clicked) state.icicle.choose(*use.clicked);
  mark("profile.table");
}

void draw_body(State& state, const ProfileView& view) {
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
  draw_tabs(state, view);
  end_card();
}

void draw_empty(const State& state, const Workspace& workspace, Commands& commands) {
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
  if (quiet_button("Copy", "profile.copy")) commands.push_back(CopyText{snippet, "The snippet"});
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

void draw_steps(State& state, const Workspace& workspace, const std::shared_ptr<const ProfileView>& shown,
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
  state.found.update(shown, state.search.data(), state.sort(Tab::operators), state.sort(Tab::difference),
                     state.sort(Tab::several));
  if (view.after)
    draw_body(state, view);
  else if (view.asked == state.question && state.message.empty())
    empty_state("No profile chosen", "Choose one above.");
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
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
  if (draw_passes(state.question, *view, commands)) ask(state, commands);
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
  const auto state = std::make_shared<State>();
  return {.id = "profile",
          .title = "Profile",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .receive =
              [state](const PanelEvent& event) {
                if (const auto* speedup = event.as<SpeedupToExplain>()) state->to_explain = *speedup;
                if (const auto* trace = event.as<TraceToShow>()) state->to_show = trace->trace;
                if (const auto* pair = event.as<PairToImport>(); pair && pair->is_example) state->tab = Tab::difference;
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
                  state->tab =
                      static_cast<Tab>(std::clamp<std::int64_t>(json["tab"].get<std::int64_t>(), 0, tab_count - 1));
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
