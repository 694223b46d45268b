// Ladder: a rung is a row with its change, its gain over the previous rung and over the baseline, its loss verdict and
// its plausibility; beneath, the selected rung's curves and figures.
#include <imgui.h>
#include <imgui_internal.h>  // SetKeyOwner

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/panel.h"
#include "app/desktop/panel_events.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/ladder/parts.h"
#include "app/panels/ladder/sweep.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct State {
  LadderViewModel shown;
  LadderHead head;
  SweepView sweep;
  LadderAxis axis;
  float table_share = 0.7f;     // of the height, at most; the user moves it
  bool shows_operators = true;  // if there are any; else the step times
  LadderId x_of = 0;
  std::pair<LadderId, int> shown_selection;                    // that the table has scrolled to
  std::optional<std::string> project;                          // the database whose ladders are shown beside
  std::map<std::string, std::vector<LadderId>> beside_before;  // by project, as last saved
};

// Ladders are numbered by project, so those shown beside are kept for each.
void take_project(State& state, const std::string& database) {
  if (state.project == database) return;
  state.project = database;
  state.head.beside.clear();
  for (const LadderId ladder : state.beside_before[database]) {
    if (state.head.beside.size() < most_beside) state.head.beside.emplace_back().ladder = ladder;
  }
}

std::string remember(const State& state) {
  auto beside = state.beside_before;
  if (state.project) {
    std::vector<LadderId>& now = beside[*state.project];
    now.clear();
    for (const FollowedBeside& other : state.head.beside) now.push_back(other.ladder);
    if (now.empty()) beside.erase(*state.project);
  }
  return nlohmann::json{{"lens", static_cast<int>(state.axis.comparison_axis)},
                        {"waterfall", state.head.waterfall},
                        {"sweep", state.head.as_sweep},
                        {"sweep_result", state.sweep.result_id()},
                        {"operators", state.shows_operators},
                        {"table_share", state.table_share},
                        {"beside", beside}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void recall(State& state, const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (const int comparison_axis = json.value("lens", 0);
        comparison_axis >= 0 && comparison_axis < static_cast<int>(comparison_axes.size()))
      state.axis.comparison_axis = comparison_axes[static_cast<std::size_t>(comparison_axis)];
    state.head.waterfall = json.value("waterfall", false);
    state.head.as_sweep = json.value("sweep", true);
    state.sweep.choose(json.value("sweep_result", ""));
    state.shows_operators = json.value("operators", true);
    state.table_share = std::clamp(json.value("table_share", state.table_share), 0.15f, 0.85f);
    state.beside_before = json.value("beside", state.beside_before);
  } catch (const nlohmann::json::exception&) {  // from another version: the defaults remain
  }
}

void draw_below(State& state, const Workspace& workspace, const LadderCurves& shown, Commands& commands) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const bool as_sweep = state.head.is_sweep && state.head.as_sweep;
  const bool is_narrow = as_sweep || room.x < px(860);  // hides the step times
  const float loss_width = as_sweep    ? state.sweep.table_width(shown.model, room.x)
                           : is_narrow ? (room.x - gap) * 0.56f
                                       : (room.x - 2 * gap) * 0.43f;
  const float dt_width = (room.x - 2 * gap) * 0.29f;
  draw_ladder_losses(state.axis, shown, ImVec2(loss_width, room.y), commands);
  ImGui::SameLine(0, gap);
  if (!is_narrow) {
    const ImVec2 size(dt_width, room.y);
    const bool has_choice = has_operators(shown.model, workspace);
    if (has_choice && state.shows_operators) {
      draw_ladder_operators(shown.model, workspace, shown.selected, size, state.shows_operators);
    } else {
      draw_ladder_times(shown, size, has_choice ? &state.shows_operators : nullptr, commands);
    }
    ImGui::SameLine(0, gap);
  }
  begin_card("##card", ImVec2(0, room.y));
  if (const LadderRung* rung = shown.model.rung(shown.selected))
    draw_ladder_card(workspace, shown.model, *rung, shown.baseline, commands);
  end_card();
}

// The gap between the table and the curves, which the mouse moves.
void draw_splitter(State& state, float table_height, float room) {
  const float gap = px(16) - ImGui::GetStyle().ItemSpacing.y * 2;
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - ImGui::GetStyle().ItemSpacing.y);
  ImGui::InvisibleButton("##splitter", ImVec2(ImGui::GetContentRegionAvail().x, px(16)));
  mark("ladder.splitter");
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
    const ImVec2 low = ImGui::GetItemRectMin();
    const float middle = (low.y + ImGui::GetItemRectMax().y) / 2;
    ImGui::GetWindowDrawList()->AddLine(ImVec2(low.x, middle), ImVec2(ImGui::GetItemRectMax().x, middle),
                                        u32(palette().accent), px(2));
  }
  if (item_is_dragged() && ImGui::GetIO().MouseDelta.y != 0)
    state.table_share = std::clamp((table_height + ImGui::GetIO().MouseDelta.y) / room, 0.15f, 0.85f);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(16) + gap + ImGui::GetStyle().ItemSpacing.y);
}

// The rungs, or the results of a sweep.
void draw_table(State& state, const Workspace& workspace, const LadderCurves& shown,
                const std::vector<BesideLadder>& beside, Commands& commands) {
  const LadderModel& model = shown.model;
  const bool as_sweep = state.head.is_sweep && state.head.as_sweep;
  const float room = ImGui::GetContentRegionAvail().y;
  std::vector<BesideRow> rows;
  if (!beside.empty()) rows = beside_rows(model, beside);
  constexpr float least_of_sweep = 330;  // its chart's
  const float wanted = as_sweep ? std::max(px(least_of_sweep), px(60) + px(41) * static_cast<float>(model.rungs.size()))
                                : ladder_table_height(beside.empty() ? model.rungs.size() : rows.size());
  constexpr float least_below = 180;  // so that the charts can be read
  const float most = std::min(room * state.table_share, room - px(least_below));
  const float height = std::clamp(wanted, px(80), std::max(px(80), most));
  // A rung that the user chose is scrolled into view; a ladder opens at its top.
  const std::pair<LadderId, int> selection{model.ladder, workspace.selection.rung};
  const bool is_other = std::exchange(state.shown_selection, selection) != selection;
  const bool is_chosen = model.rung(workspace.selection.rung) != nullptr;
  if (as_sweep) {
    state.sweep.draw(model, shown.selected, shown.caption, ImVec2(ImGui::GetContentRegionAvail().x, height), commands);
  } else {
    begin_card("##table", ImVec2(0, height));
    draw_ladder_table(model,
                      {.waterfall = state.head.waterfall,
                       .selected = shown.selected,
                       .scrolls_to = !is_other   ? -1
                                     : is_chosen ? shown.selected
                                                 : model.rungs.front().judged.rung,
                       .baseline = shown.baseline,
                       .can_change = workspace.read_only.empty(),
                       .is_over = model.is_over,
                       .beside = beside,
                       .rows = std::move(rows)},
                      commands);
    end_card();
  }
  draw_splitter(state, height, room);
}

void handle_keys(State& state, int selected, Commands& commands) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_R) && state.x_of != 0)
    commands.push_back(SaveLadder{state.x_of, ".html"});
  if (io.KeyCtrl || !keys_are_for_panel()) return;
  if (ImGui::IsKeyPressed(ImGuiKey_W, false)) state.head.waterfall = !state.head.waterfall;
  constexpr std::array keys{ImGuiKey_S, ImGuiKey_K, ImGuiKey_T, ImGuiKey_F, ImGuiKey_J};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (ImGui::IsKeyPressed(keys[i], false)) state.axis.choose(comparison_axes[i]);
  }
  if (ImGui::IsKeyPressed(ImGuiKey_B, false) && is_missing(state.axis.x.hovered))
    commands.push_back(SelectBaseline{selected});
  for (const ImGuiKey key : {ImGuiKey_DownArrow, ImGuiKey_UpArrow})  // else the focus would move, too
    ImGui::SetKeyOwner(key, ImGui::GetID("##rungs"));
  const int step = ImGui::IsKeyPressed(ImGuiKey_DownArrow) ? 1 : ImGui::IsKeyPressed(ImGuiKey_UpArrow) ? -1 : 0;
  if (step == 0) return;
  for (std::size_t i = 0; i < state.shown.model.rungs.size(); ++i) {
    if (state.shown.model.rungs[i].judged.rung != selected) continue;
    const auto next = static_cast<std::ptrdiff_t>(i) + step;
    if (next >= 0 && next < static_cast<std::ptrdiff_t>(state.shown.model.rungs.size()))
      commands.push_back(SelectRung{state.shown.model.rungs[static_cast<std::size_t>(next)].judged.rung});
    return;
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  const Ladder* ladder = workspace.shown_ladder();
  if (!ladder) {
    text_title("Ladder");
    start_here(workspace, commands, "No ladder yet. Its rungs appear here.",
               plural(workspace.runs().size(), "run") + ", none in a ladder");
    return;
  }
  take_project(state, workspace.database);
  if (state.x_of != ladder->id) {
    state.axis.x = {};
    state.x_of = ladder->id;
  }
  state.axis.x.begin_frame();
  state.shown.update(workspace, ladder->id, workspace.selection.baseline_rung, state.axis.comparison_axis,
                     &state.axis.x, commands.data);
  if (state.shown.model.ladder != ladder->id) {
    text_title("Ladder");
    empty_state("Computing...", "The rungs of " + ladder->name + " appear here in a moment.");
    return;
  }
  if (state.shown.model.rungs.empty()) {
    state.head.draw(workspace, *ladder, state.shown.model, commands);
    empty_state("No runs in " + ladder->name, "Switch to another ladder, or launch one.");
    return;
  }
  state.head.is_sweep = state.sweep.follow(workspace, ladder->id, commands);
  const bool as_sweep = state.head.is_sweep && state.head.as_sweep;
  std::vector<BesideLadder> beside;
  if (!as_sweep) beside = followed_beside(state.head.beside, workspace, ladder->id, commands);
  for (const RunEntry* entry : workspace.runs_of(ladder->id)) {
    if (!entry->is_active() && entry->run.source == "launched" && !workspace.detail(entry->run.id))
      commands.data.details.push_back(entry->run.id);
  }
  const int proposed = as_sweep && state.sweep.best_rung() >= 0 ? state.sweep.best_rung() : state.shown.model.fastest();
  const int selected = state.shown.model.rung(workspace.selection.rung) ? workspace.selection.rung : proposed;
  const int baseline = state.shown.model.rung(workspace.selection.baseline_rung)
                           ? workspace.selection.baseline_rung
                           : state.shown.model.rungs.front().judged.rung;
  if (has_only_examples(workspace)) start_here(workspace, commands);
  state.head.draw(workspace, *ladder, state.shown.model, commands);
  handle_keys(state, selected, commands);
  spacing(2);
  if (!beside.empty()) draw_beside_legend(ladder->name, beside);
  const std::vector<std::string> caption = caption_of(workspace.runs_of(ladder->id));
  draw_table(state, workspace,
             {.model = state.shown.model, .selected = selected, .baseline = baseline, .caption = caption}, beside,
             commands);
  draw_below(state, workspace,
             {.model = state.shown.model, .selected = selected, .baseline = baseline, .caption = caption}, commands);
}

}  // namespace

Panel panels::ladder() {
  const auto state = std::make_shared<State>();
  return {.id = "ladder",
          .title = "Ladder",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .receive =
              [state](const PanelEvent& event) {
                if (event.as<WaterfallToggled>()) state->head.waterfall = !state->head.waterfall;
              },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); },
          .least_height = 560};
}

}  // namespace stepladder
