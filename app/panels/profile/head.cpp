// Draws the Profile view's head: which profiles are shown, their steps, the search, imports under way, and the run that
// a trace is of.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/commands/import_commands.h"
#include "app/desktop/frames/frames.h"
#include "app/desktop/profile/profile_commands.h"
#include "app/desktop/profile/profile_state.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"
#include "app/desktop/widgets.h"
#include "app/panels/profile/parts.h"
#include "app/text/format.h"

namespace stepladder {

void ask(ProfilePanelState& state, Commands& commands) {
  state.asked = true;
  commands.push_back(ShowProfile{state.question});
}

const ProfileSource* source_of(const ProfileView& view, const ProfileSide& side) {
  for (const ProfileSource& source : view.sources) {
    if (source.side.kind == side.kind && source.side.id == side.id) return &source;
  }
  return nullptr;
}

ProfileSubject subject_of(const ProfilePanelState& state, const ProfileView& view) {
  return state.subject.value_or(view.sources.empty() && !view.all_passes.empty() ? ProfileSubject::passes
                                                                                 : ProfileSubject::steps);
}

void take_chosen_files(ProfilePanelState& state, Commands& commands) {
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

void draw_head(ProfilePanelState& state, const ProfileView* view, bool is_writable) {
  struct Entry {
    const char* name;
    ProfileSubject subject;
    const char* tip;
  };
  constexpr std::array entries{
      Entry{"Steps", ProfileSubject::steps,
            "Steps of training, slice by slice: traces of profilers, and runs trained here"},
      Entry{"Passes", ProfileSubject::passes, "Forward and backward of a model, timed call by call"}};
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
  if (!view) return;
  const ImVec2 below = ImGui::GetCursorPos();
  ImGui::PushFont(fonts().semibold, text_size);
  const float button = button_width("Import trace");
  ImGui::PopFont();
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - button - room, start.y));
  for (const Entry& entry : entries) {
    if (chip(entry.name, subject_of(state, *view) == entry.subject)) state.subject = entry.subject;
    wrapped_tooltip(entry.tip, 360);
    mark(std::string("profile.subject.") + std::to_string(static_cast<int>(entry.subject)));
    same_line(6);
  }
  ImGui::SetCursorPos(below);
}

namespace {

// A small button at the right end of a trace's row in the list. Returns whether it was pressed.
bool remove_button(const ProfileSource& source, ImVec2 corner, float row_width) {
  constexpr const char* word = "Remove";
  ImGui::PushFont(fonts().regular, small_size);
  const float width = button_width(word);
  ImGui::SetCursorPos(ImVec2(corner.x + row_width - width, corner.y + px(7)));
  const bool is_pressed = ImGui::SmallButton(word);
  ImGui::PopFont();
  wrapped_tooltip("Removes the trace from the project, not its file; Ctrl+Z brings it back", 360);
  mark("profile.remove." + std::to_string(source.side.id));
  return is_pressed;
}

// Chooses further profiles, for the table of several.
bool choose_others(const ProfileView& view, std::vector<ProfileSide>& others, const ProfileQuestion& question) {
  constexpr std::size_t most = 14;
  const std::string label = others.empty() ? "More" : "More (" + std::to_string(others.size()) + ")";
  flow_to(label.c_str());
  if (quiet_button(label.c_str(), "profile.more")) ImGui::OpenPopup("##more");
  wrapped_tooltip("Puts more than two profiles beside each other in one table", 360);
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
void draw_search(ProfilePanelState& state) {
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
    wrapped_tooltip("Enter shows the next match, Shift+Enter the one before", 360);
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

}  // namespace

void draw_question(ProfilePanelState& state, const ProfileView& view, Commands& commands) {
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
    if (!state.question.others.empty()) state.tab = ProfileTab::several;
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

}  // namespace stepladder
