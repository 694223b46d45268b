// History: every run in a table to filter, sort, group and curate; the curves of the selected runs beneath it.
#include <imgui.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/desktop/charts/chart_export.h"
#include "app/desktop/commands/export_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/views/shared_x.h"
#include "app/desktop/views/views_popup.h"
#include "app/desktop/widgets.h"
#include "app/panels/history/column_list.h"
#include "app/panels/history/overlay.h"
#include "app/panels/history/table.h"
#include "app/panels/history/traces.h"
#include "app/runs/saved_view.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct State {
  HistoryTable table;
  ColumnList column_list;
  ViewsPopup views{.panel = "history"};
  HistoryOverlay overlay;
  HistoryTraces traces;
  TagPopup tags;
  BinPopup bin;
  std::uint64_t bin_read_at = 0;  // the workspace's version, while there are no runs
};

void draw_export_popup(HistoryTable& table, const Workspace& workspace, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  popup_at_item();
  if (ImGui::BeginPopup("##export")) {
    if (ImGui::MenuItem("Copy table as Markdown"))
      commands.push_back(CopyText{markdown_table(shown_table(table, workspace)), "the table"});
    mark("history.export.copy");
    if (ImGui::MenuItem("Copy table as CSV"))
      commands.push_back(CopyText{csv_table(shown_table(table, workspace)), "the table"});
    mark("history.export.copy_csv");
    if (ImGui::MenuItem("Save table as CSV"))
      commands.push_back(SaveText{"runs", ".csv", csv_table(shown_table(table, workspace))});
    mark("history.export.csv");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_filter(HistoryTable& table) {
  HistoryRows& list = table.list;
  if (std::exchange(table.leaves_by_tab, false) || ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_F))
    ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::min(px(420), ImGui::GetContentRegionAvail().x * 0.4f));
  ImGui::InputTextWithHint("##filter", "Filter, e.g. nano status=finished min(val_loss) < 3.3", list.filter.data(),
                           list.filter.size(), ImGuiInputTextFlags_EscapeClearsAll);
  mark("history.filter");
  if (!list.filter_problem.empty())
    ImGui::GetWindowDrawList()->AddRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), u32(palette().warning),
                                        ImGui::GetStyle().FrameRounding);
  if (list.filter[0] == 0)
    wrapped_tooltip(
        "Words, and conditions on values of runs and recipes and on metrics: loss_last<3 batch=16 tags~night val/acc > "
        "0.3 max(\"top 1 (%)\") > 60 at(val/loss, 1000) < 4",
        px(420));
}

// Chooses what the runs are grouped by: one of the fixed groups, or a value of the recipe that differs between them.
void draw_groups(HistoryRows& list) {
  std::vector<std::string> names = history_group_names();
  const auto fixed = static_cast<int>(names.size());
  names.insert(names.end(), list.shape.differing.begin(), list.shape.differing.end());
  auto named = std::find(names.begin() + fixed, names.end(), list.group_value);
  if (!list.group_value.empty() && named == names.end()) named = names.insert(names.end(), list.group_value);
  auto group = list.group_value.empty() ? static_cast<int>(list.group) : static_cast<int>(named - names.begin());
  if (choice("##group", "group by", group, names, px(150))) {
    list.group = group < fixed ? static_cast<HistoryGroup>(group) : HistoryGroup::none;
    list.group_value = group < fixed ? "" : names[static_cast<std::size_t>(group)];
  }
  mark("history.group");
}

void draw_bar(State& state, const Workspace& workspace, Commands& commands) {
  HistoryTable& table = state.table;
  HistoryRows& list = table.list;
  draw_filter(table);
  flow_to("group by", 12);
  draw_groups(list);
  flow_to("Columns");
  if (quiet_button("Columns", "history.columns")) ImGui::OpenPopup("##columns");
  state.column_list.draw(table.columns, workspace);
  draw_left_out_columns(table.columns);
  flow_to("Views");
  state.views.draw_button("history.", workspace, commands);
  flow_to("Bin");
  state.bin.draw(workspace, commands);
  flow_to("Export");
  if (quiet_button("Export", "history.export")) ImGui::OpenPopup("##export");
  draw_export_popup(table, workspace, commands);
  std::size_t archived = 0;
  for (const RunEntry& entry : workspace.runs()) archived += entry.curation.archived ? 1 : 0;
  if (archived > 0 || list.archived) {
    same_line(8);
    if (chip(("Archived (" + std::to_string(archived) + ")").c_str(), list.archived)) list.archived = !list.archived;
    mark("history.archived");
  }
}

// The figures of metrics that columns and filter need.
void want_figures(HistoryTable& table, const Workspace& workspace, Commands& commands) {
  std::vector<MetricFigure> figures = table.columns.figures();
  for (const MetricFigure& figure : table.list.filter_figures)
    if (std::find(figures.begin(), figures.end(), figure) == figures.end()) figures.push_back(figure);
  if (figures != workspace.wanted_figures) commands.data.figures = std::move(figures);
}

void handle_keys(HistoryTable& table, const Workspace& workspace, Commands& commands) {
  if (!keys_are_for_panel()) return;
  handle_table_keys(table, workspace, commands);
  const std::vector<const RunEntry*> entries = selection_of(workspace, table.list).listed;
  const bool can_change = workspace.read_only.empty() && !entries.empty();
  if (ImGui::IsKeyPressed(ImGuiKey_Delete, false) && can_change) {
    for (const HistoryRow& row : table.list.rows) {  // to the row before them: Down then goes to the one after them
      if (!row.entry) continue;
      if (std::ranges::find(entries, row.entry) != entries.end()) break;
      table.cursor = row.entry->run.id;
    }
    delete_runs(entries, commands);
  }
  if (ImGui::IsKeyPressed(ImGuiKey_F2, false) && can_change) {  // of several the current run
    const auto current = std::find_if(entries.begin(), entries.end(), [&](const RunEntry* entry) {
      return entry->run.id == workspace.selection.shown_run;
    });
    table.rename(current == entries.end() ? *entries.back() : **current);
  }
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_A)) {
    std::vector<RunId> all;
    for (const HistoryRow& row : table.list.rows) {
      if (row.entry) all.push_back(row.entry->run.id);
    }
    commands.push_back(SelectRuns{std::move(all)});
  }
}

nlohmann::json state_of(const State& state) {
  const HistoryRows& list = state.table.list;
  return {
      {"columns", state.table.columns.shown},  {"sorted_by", list.sorted_by},     {"ascending", list.ascending},
      {"group", static_cast<int>(list.group)}, {"group_value", list.group_value}, {"archived", list.archived},
      {"filter", list.filter.data()},          {"metric", state.overlay.metric},  {"traces", state.traces.are_shown}};
}

nlohmann::json view_of(const State& state) {
  nlohmann::json view = state_of(state);
  view["baseline"] = run_reference(state.table.list.baseline);
  view["zoom"] = zoom_of(state.overlay.x);
  return view;
}

// Fields that `json` doesn't mention stay.
void show_state(State& state, const nlohmann::json& json) {
  try {
    HistoryRows& list = state.table.list;
    state.table.sorted_anew = true;
    state.table.columns.shown = json.value("columns", state.table.columns.shown);
    state.table.columns.shown.resize(std::min(state.table.columns.shown.size(), most_columns_shown));
    list.sorted_by = json.value("sorted_by", list.sorted_by);
    list.ascending = json.value("ascending", list.ascending);
    const int group = json.value("group", static_cast<int>(list.group));
    if (group >= 0 && group < static_cast<int>(history_group_names().size()))
      list.group = static_cast<HistoryGroup>(group);
    list.group_value = json.value("group_value", list.group_value);
    list.archived = json.value("archived", list.archived);
    state.traces.are_shown = json.value("traces", state.traces.are_shown);
    state.overlay.metric = std::min(json.value("metric", state.overlay.metric), history_metrics - 1);
    const std::string filter = json.value("filter", std::string(list.filter.data()));
    std::snprintf(list.filter.data(), list.filter.size(), "%s", filter.c_str());
    if (json.contains("baseline")) list.baseline = run_in(json["baseline"]);
    if (json.contains("zoom")) state.overlay.x = shared_x_from(json["zoom"]);
  } catch (const nlohmann::json::exception&) {  // from another version: the rest stays
  }
}

// ", 3 of them examples,"; empty if none is.
std::string examples_text(const Workspace& workspace) {
  const std::int64_t examples = count_examples(workspace);
  if (examples == 0) return "";
  return (examples == std::ssize(workspace.runs()) ? ", all" : ", " + grouped(examples) + " of them") + " examples,";
}

// What the factors are against, if a column shows one.
std::string baseline_text(HistoryTable& table, const Workspace& workspace) {
  const bool any = std::ranges::any_of(table.columns.shown, [&](const std::string& id) {
    const RunColumn* column = table.columns.find(id);
    return id == "factor" || (column && column->metric && column->metric->shows != MetricColumn::Shows::value);
  });
  if (!any) return "";
  const RunEntry* chosen = workspace.find(table.list.baseline);
  return "  \xE2\x80\x93  factors against " + (chosen ? chosen->run.name : "each ladder's baseline");
}

// "300 runs", "57 of 300 runs match the filter,"
std::string count_text(const HistoryRows& list, const Workspace& workspace) {
  const std::string all = plural(std::ssize(workspace.runs()), "run");
  if (list.filter[0] == 0 || !list.filter_problem.empty()) return all + examples_text(workspace);
  return grouped(list.matching) + " of " + all + " match the filter,";
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  text_title("History");
  const HistoryRows& list = state.table.list;
  state.table.columns.update(workspace);
  text_cut(workspace.database.empty()
               ? "No database yet"
               : count_text(list, workspace) + " in " + workspace.database + baseline_text(state.table, workspace),
           ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
  mark("history.head." + count_text(list, workspace));
  if (workspace.runs().empty()) {
    if (!workspace.traces.empty()) {
      spacing(4);
      draw_history_traces(state.traces, height_of(state.traces, workspace), "", workspace, commands);
    }
    commands.data.bin = std::exchange(state.bin_read_at, workspace.version) != workspace.version;
    if (!workspace.bin.empty()) {
      spacing(4);
      state.bin.draw(workspace, commands);
      same_line(10);
      text_quiet("All runs of this project are in the bin.");
    }
    start_here(workspace, commands, "No runs yet. Every run is listed here.");
    return;
  }
  state.overlay.x.begin_frame();
  spacing(2);
  draw_bar(state, workspace, commands);
  state.table.list.update(state.table.columns, workspace);
  want_figures(state.table, workspace, commands);
  handle_keys(state.table, workspace, commands);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const std::string list_filter(state.table.list.filter.data());
  // The table has at least half; of the rest the curves go before the traces.
  const bool has_curves = !workspace.selection.runs.empty();
  const float overlay = has_curves ? std::max(px(190), room.y * 0.38f) : ImGui::GetTextLineHeight();
  float traces = height_of(state.traces, workspace);
  const float half = std::max(px(120), room.y * 0.5f);
  if (traces > 0)
    traces = std::clamp(room.y - half - 2 * gap - overlay, std::min(traces, least_height_of_traces()), traces);
  begin_card("##table", ImVec2(0, std::max(half, room.y - gap - overlay - (traces > 0 ? traces + gap : 0))));
  draw_history_table(state.table, state.tags, workspace, commands);
  if (state.table.list.rows.empty()) {
    ImGui::SetCursorPosY(px(60));  // beneath the table's head
    if (!list.filter_problem.empty()) {
      empty_state("The filter can't be applied",
                  list.filter_problem + (list.filter_problem.ends_with('.') ? "" : ".") + " No run is listed.");
      mark("history.filter_problem");
    } else {
      const bool is_filtered = list.filter[0] != 0;
      empty_state(is_filtered ? "No matches" : "All runs are archived",
                  is_filtered ? "Press Esc in the filter to clear it." : "Click Archived above to list them.");
    }
  }
  end_card();
  mark("history.table");
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  if (traces > 0) {
    draw_history_traces(state.traces, traces, list_filter, workspace, commands);
    ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  }
  if (!has_curves) {
    text_cut("Click a run, or press Down, to see its curve here. Ctrl adds a run, Shift a range.",
             ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
    return;
  }
  begin_card("##overlay", ImVec2(0, 0));
  draw_history_overlay(state.overlay, state.table.list, state.tags, workspace, commands);
  end_card();
}

}  // namespace

Panel panels::history() {
  const auto state = std::make_shared<State>();
  return {
      .id = "history",
      .title = "History",
      .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
      .remember = [state] { return state_of(*state).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); },
      .recall = [state](const std::string& text) { show_state(*state, nlohmann::json::parse(text, nullptr, false)); },
      .view = [state](const Workspace&) { return view_of(*state); },
      .show_view = [state](const nlohmann::json& json, const Workspace&) { show_state(*state, json); },
      .least_width = 560,
      .least_height = 430};
}

}  // namespace stepladder
