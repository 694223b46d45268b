// Profile: where a step's time goes, slice by slice, and why another step is faster.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/desktop/operator_bars.h"
#include "app/desktop/panel.h"
#include "app/desktop/profile/profile_view.h"
#include "app/desktop/system/file_dialog.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/panels/profile/icicle.h"
#include "app/panels/profile/tables.h"

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

enum class Tab { difference, operators, anatomy };

struct State {
  ProfileQuestion question;
  bool asked = false;
  std::int64_t seen_import = 0;
  int seen_explanations = 0;
  std::string message;  // why an explanation has only one side
  std::array<char, 128> search{};
  Tab tab = Tab::difference;
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

// The profile of the first of these runs that has one: a trace of it before its operators.
ProfileSide side_of(const ProfileView& view, const std::vector<RunId>& runs) {
  for (const RunId run : runs) {
    for (const ProfileSource& source : view.sources) {
      if (source.run == run) return source.side;
    }
  }
  return {};
}

// What was asked for elsewhere, and what a first look shows.
void follow(State& state, const Workspace& workspace, const ProfileView& view, Commands& commands) {
  const ProfileQuestion before = state.question;
  if (workspace.imported_trace != 0 && workspace.imported_trace != state.seen_import &&
      source_of(view, {.kind = ProfileSide::Kind::trace, .id = workspace.imported_trace})) {
    // A second trace is compared with the first.
    const bool is_second = state.seen_import != 0 || state.question.after.kind != ProfileSide::Kind::none;
    state.seen_import = workspace.imported_trace;
    state.question = {.before = is_second ? state.question.after : ProfileSide{},
                      .after = {.kind = ProfileSide::Kind::trace, .id = workspace.imported_trace}};
    state.message.clear();
  }
  if (workspace.explanations != state.seen_explanations) {
    state.seen_explanations = workspace.explanations;
    state.question = {.before = side_of(view, workspace.explained.before),
                      .after = side_of(view, workspace.explained.after)};
    const bool has_before = state.question.before.kind != ProfileSide::Kind::none;
    const bool has_after = state.question.after.kind != ProfileSide::Kind::none;
    if (!has_after) std::swap(state.question.before, state.question.after);
    state.message =
        has_before && has_after ? ""
        : has_before || has_after
            ? "Only one of the two rungs has a profile. Import a trace of the other's run, or train it again: "
              "operators are timed after the last step."
            : "Neither of the two rungs has a profile. Import traces of their runs (`stepladder profile import "
              "FILE --run RUN`), or train them here.";
    state.tab = Tab::difference;
  }
  if (state.question.after.kind == ProfileSide::Kind::none && !view.sources.empty() && state.message.empty())
    state.question.after = view.sources.front().side;
  if (!(state.question == before)) ask(state, commands);
}

// --- head ------------------------------------------------------------------------------------------------------------

void hear_dialog(State& state, Commands& commands) {
  if (state.dialog.is_open()) commands.push_back(KeepDrawing{});
  const std::optional<FileAnswer> answer = state.dialog.take();
  if (!answer) return;
  if (!answer->paths.empty()) commands.push_back(PreviewImport{.paths = answer->paths});
  if (!answer->problem.empty()) state.message = answer->problem;
}

// With its right edge at that of the cards. Returns the room that it takes.
float draw_import_button(State& state, float top) {
  const char* const import = "Import trace";
  ImGui::PushFont(fonts().semibold, text_size);
  const float width = ImGui::CalcTextSize(import).x + 2 * ImGui::GetStyle().FramePadding.x;
  ImGui::PopFont();
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - width, top));
  if (primary_button(import, !state.dialog.is_open()))
    state.dialog.open({.title = "Choose a trace", .kind = FileQuestion::Kind::files});
  mark("profile.import");
  return width;
}

void draw_progress(const Workspace& workspace) {
  if (workspace.trace_import.empty()) return;
  ImGui::AlignTextToFramePadding();
  text_quiet("Reading " + workspace.trace_import + ": " + wording::percent(workspace.trace_import_share));
  mark("profile.progress");
  ImGui::SameLine(0, px(10));
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetFrameHeight() / 2 - px(3));
  progress_bar(workspace.trace_import_share, px(160));
}

void draw_head(State& state) {
  const ImVec2 start = ImGui::GetCursorPos();
  const float button = draw_import_button(state, start.y);
  ImGui::SetCursorPos(start);
  text_title("Profile");
  text_cut("Where a step's time goes, slice by slice, and why another step is faster",
           ImGui::GetContentRegionAvail().x - button - px(16), palette().quiet, fonts().regular, small_size);
}

// Returns whether another one was chosen.
bool choose_source(const char* id, const char* none, const ProfileView& view, ProfileSide& side, float width) {
  const ProfileSource* chosen = source_of(view, side);
  ImGui::SetNextItemWidth(width);
  bool changed = false;
  if (!ImGui::BeginCombo(id, combo_text(chosen ? chosen->name : none, width).c_str())) return false;
  const std::string typed = list_search("Search profiles", view.sources.size());
  if (typed.empty() && side.kind != ProfileSide::Kind::none && ImGui::Selectable(none)) {
    side = {};
    changed = true;
  }
  int number = 0;
  for (const ProfileSource& source : view.sources) {
    ImGui::PushID(number++);
    if (typed.empty() || source.name.find(typed) != std::string::npos) {
      const bool is_chosen = &source == chosen;
      if (ImGui::Selectable("##source", is_chosen, 0, ImVec2(0, px(36))) && !is_chosen) {
        side = source.side;
        changed = true;
      }
      ImGui::SameLine(0, 0);
      ImGui::BeginGroup();
      text_cut(source.name, std::max(width, px(320)), palette().text, fonts().regular, text_size, Cut::middle);
      text_quiet(source.detail);
      ImGui::EndGroup();
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
  ImGui::SameLine(0, px(6));
  if (!choice(id, "", at, words, px(has_ranks ? 140 : 100))) return false;
  side.rank = shown->steps[static_cast<std::size_t>(at)].rank;
  side.step = shown->steps[static_cast<std::size_t>(at)].step;
  return true;
}

void draw_question(State& state, const ProfileView& view, Commands& commands) {
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = std::clamp((room - px(520)) / 2, px(130), px(300));
  bool changed = choose_source("##after", "No profile", view, state.question.after, width);
  mark("profile.after.source");
  changed |= choose_step("##after_step", view.after, state.question.after);
  ImGui::SameLine(0, px(12));
  ImGui::AlignTextToFramePadding();
  text_quiet("against");
  ImGui::SameLine(0, px(8));
  changed |= choose_source("##before", "No other profile", view, state.question.before, width);
  mark("profile.before.source");
  changed |= choose_step("##before_step", view.before, state.question.before);
  if (state.question.before.kind != ProfileSide::Kind::none) {
    ImGui::SameLine(0, px(8));
    if (quiet_button("Swap")) {
      std::swap(state.question.before, state.question.after);
      changed = true;
    }
    mark("profile.swap");
  }
  if (changed) {
    state.message.clear();
    ask(state, commands);
  }
  flow_for(px(160), 12);
  ImGui::SetNextItemWidth(std::max(px(160), std::min(px(260), ImGui::GetContentRegionAvail().x)));
  ImGui::InputTextWithHint("##search", "Search slices and operators", state.search.data(), state.search.size());
  mark("profile.search");
  state.icicle.search(state.search.data());
}

// --- body ------------------------------------------------------------------------------------------------------------

FittedProfile fitted(const ShownProfile& shown) {
  return {.profile = shown.kinds, .profiled_ms = shown.step_ms, .measured_ms = shown.step_ms, .is_comparable = true};
}

void draw_kinds(const ProfileView& view) {
  text_strong("Kinds of work");
  const FittedProfile after = fitted(*view.after);
  if (view.before) {
    const FittedProfile before = fitted(*view.before);
    text_quiet("grey: " + view.before->name);
    draw_operator_bars(after, palette().accent, &before, true);
  } else {
    text_quiet("a mean step of " + milliseconds_text(view.after->step_ms));
    draw_operator_bars(after, palette().accent, nullptr, false);
  }
}

void draw_tabs(State& state, const ProfileView& view) {
  struct Entry {
    const char* name;
    Tab tab;
    bool is_there;
  };
  const std::array entries{Entry{"Difference", Tab::difference, view.difference.has_value()},
                           Entry{"Operators", Tab::operators, true},
                           Entry{"Parts of the model", Tab::anatomy, !view.after->anatomy.empty()}};
  const auto chosen = std::find_if(entries.begin(), entries.end(),
                                   [&](const Entry& entry) { return entry.tab == state.tab && entry.is_there; });
  const Tab tab = chosen == entries.end() ? Tab::operators : state.tab;
  bool is_first = true;
  for (const Entry& entry : entries) {
    if (!entry.is_there) continue;
    if (!is_first) ImGui::SameLine(0, px(8));
    is_first = false;
    if (chip(entry.name, entry.tab == tab)) state.tab = entry.tab;
    mark("profile.tab." + std::to_string(static_cast<int>(entry.tab)));
  }
  if (!state.icicle.chosen().empty()) {
    ImGui::SameLine(0, px(14));
    ImGui::AlignTextToFramePadding();
    text_cut("chosen: " + state.icicle.chosen(), ImGui::GetContentRegionAvail().x, palette().accent, fonts().regular,
             small_size);
    mark("profile.chosen");
  }
  gap(10);
  if (tab == Tab::difference)
    draw_difference_table(*view.difference, state.search.data());
  else if (tab == Tab::operators)
    draw_operator_table(*view.after, state.search.data());
  else
    draw_anatomy_table(view.before ? &*view.before : nullptr, *view.after);
  mark("profile.table");
}

void draw_body(State& state, const ProfileView& view) {
  const bool has_slices = view.after->slices || (view.before && view.before->slices);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float space = px(14);
  const float lower = has_slices ? std::max(px(240), room.y * (view.before ? 0.4f : 0.44f)) : room.y;
  if (has_slices) {
    begin_card("##slices", ImVec2(0, std::max(px(220), room.y - lower - space)));
    text_cut("W S or wheel: zoom; A D or drag: move; Home or double click: all", ImGui::GetContentRegionAvail().x,
             palette().quiet, fonts().regular, small_size);
    state.icicle.draw(view.before ? &*view.before : nullptr, *view.after, ImGui::GetContentRegionAvail().y);
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
  draw_kinds(view);
  end_card();
  mark("profile.kinds");
  ImGui::SameLine(0, space);
  begin_card("##tables", ImVec2(0, 0));
  draw_tabs(state, view);
  end_card();
}

void draw_empty(const Workspace& workspace, Commands& commands) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float width = std::min(px(760), room.x);
  ImGui::SetCursorPos(ImVec2(ImGui::GetCursorPosX() + (room.x - width) / 2,
                             ImGui::GetCursorPosY() + std::max(0.0f, room.y / 2 - px(190))));
  ImGui::BeginGroup();
  text_strong("No profiles yet");
  gap(6);
  begin_card("##snippet", ImVec2(width, px(246)));
  text_sentence(
      "Drop a trace of PyTorch's profiler (.json, .json.gz) or of Nsight Systems (nsys export --type sqlite) on this "
      "window, or press Import trace. Its step appears here, slice by slice; a second trace is compared with "
      "the first. Runs trained on a CPU here have their operators timed, and appear too.");
  gap(12);
  text_quiet("In your training script:");
  ImGui::PushFont(fonts().mono, 13);
  ImGui::TextUnformatted(snippet);
  ImGui::PopFont();
  gap(6);
  if (quiet_button("Copy")) commands.push_back(CopyText{snippet, "The snippet"});
  mark("profile.copy");
  end_card();
  draw_progress(workspace);
  ImGui::EndGroup();
  mark("profile.empty");
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  if (!state.asked) ask(state, commands);
  hear_dialog(state, commands);
  draw_head(state);
  gap(14);
  const ProfileView* view = workspace.profile_view.get();
  if (!view) {
    commands.push_back(KeepDrawing{});
    return;
  }
  follow(state, workspace, *view, commands);
  if (view->sources.empty() && view->problem.empty()) return draw_empty(workspace, commands);
  draw_question(state, *view, commands);
  draw_progress(workspace);
  if (!state.message.empty()) {
    text_sentence(state.message, Tone::warning);
    mark("profile.message");
  }
  gap(10);
  if (!(view->asked == state.question)) commands.push_back(KeepDrawing{});
  if (!view->problem.empty()) {
    text_toned("A profile can't be shown", Tone::bad);
    text_sentence(view->problem);
    mark("profile.problem");
    if (!view->after) return;
  }
  if (view->after)
    draw_body(state, *view);
  else if (view->asked == state.question && state.message.empty())
    empty_state("No profile chosen", "Choose one above.");
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
          .view =
              [state](const Workspace&) {
                return nlohmann::json{{"before", side_json(state->question.before)},
                                      {"after", side_json(state->question.after)},
                                      {"search", std::string(state->search.data())},
                                      {"tab", static_cast<int>(state->tab)}};
              },
          .show_view =
              [state](const nlohmann::json& json, const Workspace&) {
                if (!json.is_object()) return;
                if (json.contains("before")) state->question.before = side_from(json["before"]);
                if (json.contains("after")) state->question.after = side_from(json["after"]);
                if (json.contains("tab") && json["tab"].is_number_integer())
                  state->tab = static_cast<Tab>(std::clamp<std::int64_t>(json["tab"].get<std::int64_t>(), 0, 2));
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
