// History: every run in a table to filter and sort; the selected ones overlaid beneath.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "app/desktop/charts.h"
#include "app/desktop/panel.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/run_filter.h"

namespace stepladder {
namespace {

enum Column {
  column_on,
  column_name,
  column_stage,
  column_status,
  column_steps,
  column_loss,
  column_val_loss,
  column_dt,
  column_tokens,
  column_hardware,
  column_created,
  column_count
};

constexpr std::array<const char*, 3> metrics = {"Loss", "Throughput", "Step time"};

struct State {
  std::array<char, 256> filter{};
  std::string filter_problem;
  int sorted_by = column_created;
  bool ascending = false;
  int metric = 0;
  std::vector<const RunEntry*> rows;
};

double sort_value(const RunEntry& entry, int column) {
  switch (column) {
    case column_steps:
      return static_cast<double>(entry.summary.steps);
    case column_loss:
      return entry.summary.loss_last;
    case column_val_loss:
      return entry.summary.val_loss_last;
    case column_dt:
      return entry.summary.dt_ms_median;
    case column_tokens:
      return entry.summary.tokens_per_s;
    default:
      return entry.run.created_at;
  }
}

std::string sort_text(const RunEntry& entry, int column) {
  switch (column) {
    case column_name:
      return entry.run.name;
    case column_stage:
      return entry.run.stage;
    case column_status:
      return std::string(to_string(entry.run.status));
    default:
      return entry.run.hardware;
  }
}

bool is_text(int column) {
  return column == column_name || column == column_stage || column == column_status || column == column_hardware;
}

void take_rows(State& state, const Workspace& workspace) {
  state.rows.clear();
  state.filter_problem.clear();
  try {
    const RunFilter filter(state.filter.data());
    for (const RunEntry& entry : workspace.runs()) {
      if (filter.accepts(entry.run, entry.summary)) state.rows.push_back(&entry);
    }
  } catch (const FilterError& error) {  // half typed: everything stays in view
    state.filter_problem = error.what();
    for (const RunEntry& entry : workspace.runs()) state.rows.push_back(&entry);
  }
  const int column = state.sorted_by;
  std::stable_sort(state.rows.begin(), state.rows.end(), [&](const RunEntry* a, const RunEntry* b) {
    if (!state.ascending) std::swap(a, b);
    if (is_text(column)) return sort_text(*a, column) < sort_text(*b, column);
    const double x = sort_value(*a, column);
    const double y = sort_value(*b, column);
    // Not a number sorts before every number, so that the order is one.
    if (x != x || y != y) return x != x && y == y;
    return x != y ? x < y : a->run.id < b->run.id;
  });
}

Tone status_tone(RunStatus status) {
  switch (status) {
    case RunStatus::finished:
      return Tone::good;
    case RunStatus::failed:
      return Tone::bad;
    case RunStatus::running:
      return Tone::accent;
    case RunStatus::queued:
      return Tone::neutral;
    default:
      return Tone::warning;
  }
}

void number_cell(const std::string& text) {
  ImGui::TableNextColumn();
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x);
}

void draw_row(const RunEntry& entry, const Workspace& workspace, Commands& commands) {
  const bool is_selected = workspace.selected_runs.contains(entry.run.id);
  ImGui::PushID(static_cast<int>(entry.run.id));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  if (ImGui::Selectable("##row", is_selected, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(22)))) {
    commands.push_back(SelectRun{entry.run.id, !is_selected});
  }
  mark("history.run." + std::to_string(entry.run.id));
  if (!entry.run.reason.empty()) ImGui::SetItemTooltip("%s", entry.run.reason.c_str());
  ImGui::SameLine(px(4));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec4 colour = rung_colour(entry.run.rung);
  const ImVec2 low(at.x, at.y + px(5));
  const ImVec2 high(at.x + px(12), at.y + px(17));
  if (is_selected) {
    draw->AddRectFilled(low, high, u32(colour), px(3));
  } else {
    draw->AddRect(low, high, u32(colour, 0.7f), px(3), 0, px(1.5f));
  }
  ImGui::TableNextColumn();
  text_cut(entry.run.name, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, text_size);
  ImGui::TableNextColumn();
  text_cut(entry.run.stage, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, text_size);
  ImGui::TableNextColumn();
  pill(std::string(to_string(entry.run.status)), status_tone(entry.run.status));
  const bool is_live = entry.run.status == RunStatus::running;
  number_cell(grouped(is_live ? static_cast<std::int64_t>(entry.series.size()) : entry.summary.steps));
  number_cell(loss_text(is_live && !entry.series.empty() ? entry.series.loss.back() : entry.summary.loss_last));
  number_cell(loss_text(entry.summary.val_loss_last));
  number_cell(compact(entry.summary.dt_ms_median));
  number_cell(tokens_per_s_text(entry.summary.tokens_per_s));
  ImGui::TableNextColumn();
  text_cut(entry.run.hardware.empty() ? "-" : entry.run.hardware, ImGui::GetContentRegionAvail().x, palette().text,
           fonts().regular, text_size);
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(entry.run.source == "launched" ? local_time_text(entry.run.created_at).c_str()
                                                        : entry.run.source.c_str());
  ImGui::PopID();
}

bool is_number(int column) {
  return column >= column_steps && column <= column_tokens;
}

// As ImGui's own, with the names of numbers over the numbers' right edge.
void draw_head_row() {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < column_count; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const char* name = ImGui::TableGetColumnName(column);
    ImGui::PushID(column);
    if (is_number(column)) {
      const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
      const ImVec2 at = ImGui::GetCursorPos();
      ImGui::TableHeader("##number");
      ImGui::SetCursorPos(at);
      text_right(name, right, fonts().regular, small_size, &palette().quiet);
    } else {
      ImGui::TableHeader(name);
    }
    ImGui::PopID();
  }
}

void draw_table(State& state, const Workspace& workspace, Commands& commands) {
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable | ImGuiTableFlags_Reorderable |
                                    ImGuiTableFlags_Hideable | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp |
                                    ImGuiTableFlags_PadOuterX;
  if (!ImGui::BeginTable("##runs", column_count, flags, ImGui::GetContentRegionAvail())) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  constexpr ImGuiTableColumnFlags most_first = fixed | ImGuiTableColumnFlags_PreferSortDescending;
  // What a narrow table can do without.
  const float width = ImGui::GetWindowWidth();
  const ImGuiTableColumnFlags if_wide = width < px(1050) ? ImGuiTableColumnFlags_Disabled : 0;
  const ImGuiTableColumnFlags if_not_narrow = width < px(760) ? ImGuiTableColumnFlags_Disabled : 0;
  ImGui::TableSetupColumn(
      "##on", fixed | ImGuiTableColumnFlags_NoSort | ImGuiTableColumnFlags_NoResize | ImGuiTableColumnFlags_NoHide,
      px(20));
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch, 3.4f);
  ImGui::TableSetupColumn("stage", if_wide | ImGuiTableColumnFlags_WidthStretch, 1.3f);
  ImGui::TableSetupColumn("status", fixed, px(100));
  ImGui::TableSetupColumn("steps", most_first, px(64));
  ImGui::TableSetupColumn("loss", fixed, px(72));
  ImGui::TableSetupColumn("val loss", if_not_narrow | fixed, px(78));
  ImGui::TableSetupColumn("dt, ms", if_not_narrow | fixed, px(68));
  ImGui::TableSetupColumn("tokens/s", most_first, px(88));
  ImGui::TableSetupColumn("hardware", if_wide | ImGuiTableColumnFlags_WidthStretch, 1.6f);
  ImGui::TableSetupColumn(
      "created", if_not_narrow | fixed | ImGuiTableColumnFlags_DefaultSort | ImGuiTableColumnFlags_PreferSortDescending,
      px(132));
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  draw_head_row();
  ImGui::PopStyleColor();
  ImGui::PopFont();
  if (const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs(); specs && specs->SpecsCount > 0) {
    state.sorted_by = specs->Specs[0].ColumnIndex;
    state.ascending = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
  }
  take_rows(state, workspace);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(state.rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      draw_row(*state.rows[static_cast<std::size_t>(i)], workspace, commands);
    }
  }
  ImGui::EndTable();
}

void draw_overlay(State& state, const Workspace& workspace, Commands& commands) {
  std::vector<const RunEntry*> selected;
  for (const RunId id : workspace.selected_runs) {
    const RunEntry* entry = workspace.find(id);
    if (!entry) continue;
    if (!entry->loaded) commands.push_back(LoadSeries{id});
    selected.push_back(entry);
  }
  if (selected.empty()) {
    empty_state("No run is selected.", "Click runs in the table: their curves are laid over each other here.");
    return;
  }
  for (int i = 0; i < static_cast<int>(metrics.size()); ++i) {
    if (i > 0) ImGui::SameLine(0, px(4));
    ImGui::PushStyleColor(ImGuiCol_Button, i == state.metric ? faded(palette().accent, 0.2f) : ImVec4(0, 0, 0, 0));
    if (ImGui::Button(metrics[static_cast<std::size_t>(i)])) state.metric = i;
    ImGui::PopStyleColor();
    mark(std::string("history.metric.") + std::to_string(i));
  }
  ImGui::SameLine();
  if (ImGui::Button("Clear selection")) commands.push_back(ClearSelection{});
  mark("history.clear");

  // A rung keeps its colour; where two selected runs share one, the later takes a colour that is free.
  std::vector<int> colours;
  Chart chart{.id = "overlay",
              .title = metrics[static_cast<std::size_t>(state.metric)],
              .x_label = "step",
              .unit = state.metric == 1   ? "tokens/s"
                      : state.metric == 2 ? "ms"
                                          : "",
              .from_zero = state.metric != 0};
  for (const RunEntry* entry : selected) {
    int colour = entry->run.rung;
    while (std::find(colours.begin(), colours.end(), colour) != colours.end()) ++colour;
    colours.push_back(colour);
    if (entry->steps.empty()) continue;
    const std::span<const double> y = state.metric == 0   ? std::span<const double>(entry->series.loss)
                                      : state.metric == 1 ? std::span<const double>(entry->tokens_per_s)
                                                          : std::span<const double>(entry->series.dt_ms);
    chart.curves.push_back({.label = entry->run.name + "##" + std::to_string(entry->run.id),
                            .x = entry->steps,
                            .y = y,
                            .colour = rung_colour(colour),
                            .weight = selected.size() > 12 ? 1.0f : 1.7f,
                            .in_legend = selected.size() <= 12});
  }
  draw_chart(chart);
}

}  // namespace

Panel panels::history() {
  return {.id = "history",
          .title = "History",
          .draw = [state = std::make_shared<State>()](const Workspace& workspace, Commands& commands) {
            text_title("History");
            text_cut(grouped(static_cast<std::int64_t>(workspace.runs().size())) + " runs in " + workspace.database,
                     ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
            if (workspace.runs().empty()) {
              empty_state("No runs yet.", "Start a ladder in Launch; every run that ever ran stays here.");
              return;
            }
            ImGui::Dummy(ImVec2(0, px(2)));
            ImGui::SetNextItemWidth(px(420));
            ImGui::InputTextWithHint("##filter", "filter: nano status=finished tokens_per_s>20000",
                                     state->filter.data(), state->filter.size());
            mark("history.filter");
            if (state->filter[0] != 0) {
              ImGui::SameLine();
              ImGui::AlignTextToFramePadding();
              text_quiet(state->filter_problem.empty()
                             ? grouped(static_cast<std::int64_t>(state->rows.size())) + " match"
                             : state->filter_problem);
            }
            const ImVec2 room = ImGui::GetContentRegionAvail();
            const float gap = px(16);
            begin_card("##table", ImVec2(0, (room.y - gap) * 0.54f));
            draw_table(*state, workspace, commands);
            end_card();
            ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
            begin_card("##overlay", ImVec2(0, 0));
            draw_overlay(*state, workspace, commands);
            end_card();
          }};
}

}  // namespace stepladder
