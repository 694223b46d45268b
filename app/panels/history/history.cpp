// History: every run in a table to filter, sort, group and curate; the curves of the selected runs beneath it.
#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/panels/history/overlay.h"
#include "app/panels/history/table.h"

namespace stepladder {
namespace {

struct State {
  HistoryTable table;
  HistoryOverlay overlay;
  TagPopup tags;
};

void draw_export_popup(const HistoryTable& table, const Workspace& workspace, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  popup_at_item();
  if (ImGui::BeginPopup("##export")) {
    if (ImGui::MenuItem("Copy table as Markdown"))
      commands.push_back(CopyText{markdown_table(shown_table(table, workspace)), "The table"});
    mark("history.export.copy");
    if (ImGui::MenuItem("Copy table as CSV"))
      commands.push_back(CopyText{csv_table(shown_table(table, workspace)), "The table"});
    if (ImGui::MenuItem("Save table as CSV"))
      commands.push_back(SaveText{"runs", ".csv", csv_table(shown_table(table, workspace))});
    mark("history.export.csv");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_bar(HistoryTable& table, const Workspace& workspace, Commands& commands) {
  HistoryRows& list = table.list;
  ImGui::SetNextItemWidth(std::min(px(420), ImGui::GetContentRegionAvail().x * 0.4f));
  ImGui::InputTextWithHint("##filter", "Filter, e.g. nano status=finished loss_last<3 tags~night", list.filter.data(),
                           list.filter.size(), ImGuiInputTextFlags_EscapeClearsAll);
  mark("history.filter");
  flow_to("group by", 12);
  int group = static_cast<int>(list.group);
  if (choice("##group", "group by", group, history_group_names(), px(150)))
    list.group = static_cast<HistoryGroup>(group);
  mark("history.group");
  flow_to("Columns");
  if (ImGui::Button("Columns")) ImGui::OpenPopup("##columns");
  mark("history.columns");
  draw_column_popup(table.columns);
  draw_left_out_columns(table.columns);
  flow_to("Export");
  if (ImGui::Button("Export")) ImGui::OpenPopup("##export");
  mark("history.export");
  draw_export_popup(table, workspace, commands);
  std::size_t archived = 0;
  for (const RunEntry& entry : workspace.runs()) archived += entry.curation.archived ? 1 : 0;
  if (archived > 0 || list.archived) {
    ImGui::SameLine(0, px(8));
    if (chip(("Archived (" + std::to_string(archived) + ")").c_str(), list.archived)) list.archived = !list.archived;
    mark("history.archived");
  }
  if (list.filter[0] != 0) {
    flow_for(px(160), 12);
    ImGui::AlignTextToFramePadding();
    const float room = std::max(px(60), ImGui::GetContentRegionAvail().x);
    if (list.filter_problem.empty()) {
      text_quiet(grouped(static_cast<std::int64_t>(list.matching)) + (list.matching == 1 ? " matches" : " match"));
    } else {
      text_cut(list.filter_problem, room, palette().warning, fonts().regular, small_size);
    }
  }
}

void handle_keys(HistoryTable& table, const Workspace& workspace, Commands& commands) {
  if (!keys_are_for_panel()) return;
  const std::vector<const RunEntry*> entries = selection_of(workspace, table.list).listed;
  if (ImGui::IsKeyPressed(ImGuiKey_Delete, false) && !entries.empty()) delete_runs(entries, commands);
  if (ImGui::IsKeyPressed(ImGuiKey_F2, false) && entries.size() == 1) table.rename(*entries.front());
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_A)) {
    std::vector<RunId> all;
    for (const HistoryRow& row : table.list.rows) {
      if (row.entry) all.push_back(row.entry->run.id);
    }
    commands.push_back(SelectRuns{std::move(all)});
  }
}

std::string remember(const State& state) {
  const HistoryRows& list = state.table.list;
  return nlohmann::json{
      {"columns", state.table.columns.shown},  {"sorted_by", list.sorted_by}, {"ascending", list.ascending},
      {"group", static_cast<int>(list.group)}, {"archived", list.archived},   {"filter", list.filter.data()},
      {"metric", state.overlay.metric}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void recall(State& state, const std::string& text) {
  try {
    HistoryRows& list = state.table.list;
    const nlohmann::json json = nlohmann::json::parse(text);
    state.table.columns.shown = json.value("columns", state.table.columns.shown);
    list.sorted_by = json.value("sorted_by", list.sorted_by);
    list.ascending = json.value("ascending", list.ascending);
    if (const int group = json.value("group", 0); group >= 0 && group < static_cast<int>(history_group_names().size()))
      list.group = static_cast<HistoryGroup>(group);
    list.archived = json.value("archived", false);
    state.overlay.metric = std::min(json.value("metric", std::size_t{0}), history_metrics - 1);
    std::snprintf(list.filter.data(), list.filter.size(), "%s", json.value("filter", std::string()).c_str());
  } catch (const nlohmann::json::exception&) {  // from another version: the defaults remain
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  text_title("History");
  text_cut(
      workspace.database.empty() ? "No database yet" : runs_text(workspace.runs().size()) + " in " + workspace.database,
      ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
  if (workspace.runs().empty()) {
    empty_state("No runs yet", "Every run is listed here. Launch a ladder, or drop a log on the window.");
    return;
  }
  state.table.columns.update(workspace);
  state.overlay.x.begin_frame();
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_bar(state.table, workspace, commands);
  state.table.list.update(state.table.columns, workspace);
  handle_keys(state.table, workspace, commands);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float overlay = workspace.selected_runs.empty() ? px(92) : std::max(px(240), room.y * 0.44f);
  begin_card("##table", ImVec2(0, std::max(px(120), room.y - gap - overlay)));
  draw_history_table(state.table, state.tags, workspace, commands);
  if (state.table.list.rows.empty()) {
    ImGui::SetCursorPosY(px(60));  // beneath the table's head
    const bool is_filtered = state.table.list.filter[0] != 0;
    empty_state(is_filtered ? "No matches" : "All runs are archived",
                is_filtered ? "Press Esc in the filter to clear it." : "Click Archived above to list them.");
  }
  end_card();
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  begin_card("##overlay", ImVec2(0, 0));
  draw_history_overlay(state.overlay, state.table.list, state.tags, workspace, commands);
  end_card();
}

}  // namespace

Panel panels::history() {
  const auto state = std::make_shared<State>();
  return {.id = "history",
          .title = "History",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); },
          .least_width = 560,
          .least_height = 430};
}

}  // namespace stepladder
