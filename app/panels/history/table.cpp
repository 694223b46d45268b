// Draws History's table and its menus. Only visible rows are drawn. ImGui holds order and sorting of the columns while
// the table is drawn, so changes from its menus are carried out afterwards.
#include "app/panels/history/table.h"

#include <imgui.h>
#include <imgui_internal.h>  // the order of a table's columns

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "app/desktop/commands/curation_commands.h"
#include "app/desktop/commands/selection_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/history/cells.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float row_text_height = 22;

float run_row_height() {
  return px(row_text_height) + 2 * ImGui::GetStyle().CellPadding.y;
}

void draw_row_menu(HistoryTable& table, TagPopup& tags, const RunEntry& entry, const Workspace& workspace,
                   Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopupContextItem("##menu")) {
    std::vector<const RunEntry*> entries{&entry};
    if (workspace.selection.runs.contains(entry.run.id)) entries = selection_of(workspace, table.list).listed;
    if (ImGui::MenuItem("Open", "Double-click")) commands.push_back(OpenRun{entry.run.id});
    begin_change(workspace);
    if (ImGui::MenuItem("Rename", "F2")) table.rename(entry);
    end_change(workspace);
    if (entry.run.ladder && ImGui::MenuItem("Show ladder")) commands.push_back(SelectLadder{*entry.run.ladder});
    if (ImGui::MenuItem("Use as baseline", nullptr, table.list.baseline == entry.run.id))
      table.list.baseline = table.list.baseline == entry.run.id ? 0 : entry.run.id;
    ImGui::Separator();
    begin_change(workspace);
    if (ImGui::MenuItem("Tag", nullptr)) {
      if (!workspace.selection.runs.contains(entry.run.id)) commands.push_back(SelectRuns{{entry.run.id}});
      tags.open = true;
    }
    if (ImGui::MenuItem(entry.curation.pinned ? "Unpin" : "Pin")) pin_runs(entries, commands);
    if (ImGui::MenuItem(entry.curation.archived ? "Unarchive" : "Archive")) archive_runs(entries, commands);
    if (ImGui::MenuItem("Delete", "Del")) delete_runs(entries, commands);
    end_change(workspace);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

// The first row of a run, which has one in each of its tags' groups; rows.size(): none.
std::size_t place_of(RunId run, const std::vector<HistoryRow>& rows) {
  const auto found =
      std::ranges::find_if(rows, [run](const HistoryRow& row) { return row.entry && row.entry->run.id == run; });
  return static_cast<std::size_t>(found - rows.begin());
}

void select_between(std::size_t from, std::size_t to, const std::vector<HistoryRow>& rows, Commands& commands) {
  for (std::size_t i = std::min(from, to); i <= std::max(from, to) && i < rows.size(); ++i) {
    if (rows[i].entry) commands.push_back(SelectRun{rows[i].entry->run.id, true});
  }
}

// Selects the run alone; with Shift all from the cursor to it, with Ctrl it is added or taken away.
void click(HistoryTable& table, const RunEntry& entry, const Workspace& workspace, Commands& commands) {
  const std::vector<HistoryRow>& rows = table.list.rows;
  const RunId run = entry.run.id;
  const ImGuiIO& io = ImGui::GetIO();
  const std::size_t from = io.KeyShift ? place_of(table.cursor, rows) : rows.size();
  table.shows_cursor = true;  // Enter opens the run, as after a key
  if (from == rows.size()) {
    table.cursor = run;
    if (io.KeyCtrl) return commands.push_back(SelectRun{run, !workspace.selection.runs.contains(run)});
  }
  if (!io.KeyCtrl) commands.push_back(ClearSelection{});
  if (from < rows.size()) select_between(from, place_of(run, rows), rows, commands);
  commands.push_back(SelectRun{run, true});
}

void draw_name(HistoryTable& table, const HistoryRow& row, Commands& commands) {
  const RunEntry& entry = *row.entry;
  if (row.depth > 0) {
    ImGui::Dummy(ImVec2(px(14) * static_cast<float>(std::min(row.depth, 8)), 1));
    ImGui::SameLine(0, 0);
  }
  if (table.renaming == entry.run.id) {
    ImGui::SetNextItemWidth(-1);
    ImGui::SetKeyboardFocusHere();
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), px(2)));
    const bool done = ImGui::InputText("##name", table.name.data(), table.name.size(),
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    ImGui::PopStyleVar();
    mark("history.name.field");
    if (done) commands.push_back(RenameRun{entry.run.id, table.name.data()});
    if (done || ImGui::IsKeyPressed(ImGuiKey_Escape)) table.end_renaming();
    return;
  }
  middle_line();
  float room = ImGui::GetContentRegionAvail().x;
  if (entry.curation.pinned) {
    ImGui::TextColored(palette().accent, "*");
    ImGui::SetItemTooltip("Pinned");
    same_line(6);
    room = ImGui::GetContentRegionAvail().x;
  }
  text_cut(entry.run.name, room, entry.curation.archived ? palette().quiet : palette().text, fonts().regular, text_size,
           Cut::middle);
}

// The look of the run's curves in row and chart; none for a run that isn't in the chart, unless the user has chosen it.
std::optional<int> look_of(const HistoryTable& table, const RunEntry& entry, const Workspace& workspace) {
  if (const auto in_chart = table.colours.find(entry.run.id); in_chart != table.colours.end()) return in_chart->second;
  const auto chosen = workspace.selection.colours.find(entry.run.id);
  return chosen == workspace.selection.colours.end() ? std::nullopt : std::optional(chosen->second);
}

// Adds the run to the selection or takes it away.
void draw_box(HistoryTable& table, const RunEntry& entry, bool is_selected, std::optional<int> look,
              Commands& commands) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::InvisibleButton("##box", ImVec2(px(16), px(row_text_height)))) {
    commands.push_back(SelectRun{entry.run.id, !is_selected});
    table.cursor = entry.run.id;
    table.shows_cursor = false;
  }
  mark("history.box." + std::to_string(entry.run.id));
  const ImVec2 low(at.x, at.y + px(5));
  const ImVec2 high(at.x + px(12), at.y + px(17));
  if (is_selected && look) return fill_look(low, high, *look);
  const ImVec4 edge = look ? rung_colour(*look) : palette().quiet;
  ImGui::GetWindowDrawList()->AddRect(low, high, u32(edge, ImGui::IsItemHovered() ? 1.0f : 0.7f), px(3), 0, px(1.5f));
}

void draw_row(HistoryTable& table, TagPopup& tags, const HistoryRow& row, const std::vector<const RunColumn*>& columns,
              const ColumnContext& context, Commands& commands) {
  const RunEntry& entry = *row.entry;
  const Workspace& workspace = *context.workspace;
  const bool is_selected = workspace.selection.runs.contains(entry.run.id);
  ImGui::PushID(static_cast<int>(entry.run.id));
  ImGui::TableNextRow();
  const bool has_cursor = table.shows_cursor && table.cursor == entry.run.id;
  if (has_cursor) ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, u32(palette().accent, 0.14f));
  ImGui::TableNextColumn();
  if (ImGui::Selectable("##row", is_selected, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(row_text_height))))
    click(table, entry, workspace, commands);
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    commands.push_back(OpenRun{entry.run.id});
  mark("history.run." + std::to_string(entry.run.id));
  if (has_cursor) {
    mark("history.cursor." + std::to_string(entry.run.id));
    const ImVec2 low = ImGui::GetItemRectMin();
    ImGui::GetWindowDrawList()->AddRectFilled(low, ImVec2(low.x + px(3), ImGui::GetItemRectMax().y),
                                              u32(palette().accent));
  }
  if (!entry.run.reason.empty()) ImGui::SetItemTooltip("%s", entry.run.reason.c_str());
  draw_row_menu(table, tags, entry, workspace, commands);
  ImGui::SameLine(px(4));
  const std::optional<int> look = look_of(table, entry, workspace);
  const ImVec4 colour = look ? rung_colour(*look) : palette().quiet;
  draw_box(table, entry, is_selected, look, commands);
  ImGui::TableNextColumn();
  draw_name(table, row, commands);
  for (const RunColumn* column : columns) {
    ImGui::TableNextColumn();
    draw_cell(table.list, *column, entry, context, colour, commands);
  }
  ImGui::PopID();
}

void draw_group_head(HistoryRows& list, const HistoryRow& row) {
  ImGui::PushID(row.head.c_str());
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool folded = list.folded.contains(row.head);
  if (ImGui::Selectable("##head", false, ImGuiSelectableFlags_SpanAllColumns, ImVec2(0, px(row_text_height)))) {
    if (folded) {
      list.folded.erase(row.head);
    } else {
      list.folded.insert(row.head);
    }
  }
  ImGui::SameLine(px(4));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float x = at.x + px(6);
  const float y = at.y + px(11);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 ink = u32(palette().quiet);
  if (folded) {
    draw->AddTriangleFilled(ImVec2(x - px(3), y - px(5)), ImVec2(x - px(3), y + px(5)), ImVec2(x + px(4), y), ink);
  } else {
    draw->AddTriangleFilled(ImVec2(x - px(5), y - px(3)), ImVec2(x + px(5), y - px(3)), ImVec2(x, y + px(4)), ink);
  }
  ImGui::TableNextColumn();
  ImGui::TablePushBackgroundChannel();  // the head has the row's width, not the column's
  const ImGuiTable* drawn = ImGui::GetCurrentTable();
  const float width = drawn->InnerClipRect.Max.x - ImGui::GetCursorScreenPos().x - px(60);
  text_cut(row.head, std::max(width, px(120)), palette().text, fonts().semibold, text_size, Cut::middle);
  same_line(10);
  middle_line();
  text_quiet(in_print(plural(row.runs, "run") + row.figures));
  mark("history.group_head." + std::to_string(row.runs) + row.figures);
  ImGui::TablePopBackgroundChannel();
  ImGui::PopID();
}

// A change of a column by its head, carried out when the table has been drawn.
using ColumnChange = std::function<void(HistoryColumns&)>;

void draw_head_menu(const RunColumn& column, HistoryColumns& columns, ColumnChange& change) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  ImGui::PushFont(fonts().regular, text_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().text);
  if (ImGui::BeginPopupContextItem("##head")) {
    const std::string id = column.id;
    const auto item = [&](const char* words, const char* name, ColumnChange what, bool is_possible = true) {
      if (ImGui::MenuItem(words, nullptr, false, is_possible)) change = std::move(what);
      mark(std::string("history.head.") + name);
    };
    item("Move to the left", "left", [id](HistoryColumns& all) { all.move(id, -1); });
    item("Move to the right", "right", [id](HistoryColumns& all) { all.move(id, 1); });
    item(
        "Remove column", "remove", [id](HistoryColumns& all) { all.remove(id); }, columns.shown.size() > 1);
    if (column.metric) {
      ImGui::Separator();
      MetricColumn beside = *column.metric;
      beside.shows = MetricColumn::Shows::difference;
      const std::string difference = id_of(beside);
      beside.shows = MetricColumn::Shows::factor;
      const std::string factor = id_of(beside);
      item(
          "Add difference from the baseline", "difference", [difference](HistoryColumns& all) { all.add(difference); },
          !columns.shows(difference));
      item(
          "Add factor of the baseline", "factor", [factor](HistoryColumns& all) { all.add(factor); },
          !columns.shows(factor));
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ImGui::PopStyleVar();
}

void draw_head_row(const std::vector<const RunColumn*>& columns, HistoryColumns& all, ColumnChange& change) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < static_cast<int>(columns.size()) + 2; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const char* name = ImGui::TableGetColumnName(column);
    const RunColumn* shown = column >= 2 ? columns[static_cast<std::size_t>(column) - 2] : nullptr;
    ImGui::PushID(column);
    column_head(column == 0 ? "" : name, shown && shown->kind == ColumnKind::number);
    if (shown) {
      mark("history.head." + shown->id);
      draw_head_menu(*shown, all, change);
    }
    ImGui::PopID();
  }
}

// Of the longest listed name; a much longer one is cut.
float name_width(const HistoryRows& list) {
  const auto letters = static_cast<float>(list.longest_name);
  return std::clamp(letters * 0.52f * px(text_size) + px(14), least_name_width(), px(340));
}

// Gives the table the list's order.
void show_order(const HistoryRows& list, const std::vector<const RunColumn*>& columns) {
  const auto sorted =
      std::ranges::find_if(columns, [&](const RunColumn* column) { return column->id == list.sorted_by; });
  const bool is_shown = sorted != columns.end() || list.sorted_by == "name";
  const int place = sorted != columns.end() ? static_cast<int>(sorted - columns.begin()) + 2 : 1;
  ImGui::TableSetColumnSortDirection(place,
                                     !is_shown        ? ImGuiSortDirection_None
                                     : list.ascending ? ImGuiSortDirection_Ascending
                                                      : ImGuiSortDirection_Descending,
                                     false);
}

// Keeps the order into which the user has dragged the heads.
void take_dragged_order(HistoryColumns& all, const std::vector<const RunColumn*>& columns) {
  const ImGuiTable* table = ImGui::GetCurrentTable();
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) return;  // the drag continues
  std::vector<std::pair<int, std::string>> order;
  for (std::size_t i = 0; i < columns.size(); ++i)
    order.emplace_back(table->Columns[static_cast<int>(i) + 2].DisplayOrder, columns[i]->id);
  if (std::ranges::is_sorted(order, [](const auto& a, const auto& b) { return a.first < b.first; })) return;
  std::ranges::sort(order);
  std::vector<std::string> shown;
  for (auto& [place, id] : order) shown.push_back(std::move(id));
  for (const std::string& id : all.shown)  // those that don't fit
    if (std::ranges::find(shown, id) == shown.end()) shown.push_back(id);
  all.shown = std::move(shown);
}

// Scrolls so that the run that the keys have come to is in sight, with its neighbour where there is room.
void scroll_to_cursor(HistoryTable& table) {
  if (!std::exchange(table.scrolls_to_cursor, false)) return;
  const std::size_t place = place_of(table.cursor, table.list.rows);
  if (place == table.list.rows.size()) return;
  const ImGuiTable* drawn = ImGui::GetCurrentTable();
  const float head = drawn->RowPosY2 - drawn->RowPosY1;
  const float visible = drawn->InnerClipRect.GetHeight() - head;
  const float top = run_row_height() * static_cast<float>(place);
  const float margin = std::min(run_row_height(), (visible - run_row_height()) / 2);
  const float now = ImGui::GetScrollY();
  ImGui::SetScrollY(std::clamp(now, top + run_row_height() + margin - visible, std::max(0.0f, top - margin)));
}

}  // namespace

void handle_table_keys(HistoryTable& table, const Workspace& workspace, Commands& commands) {
  const std::vector<HistoryRow>& rows = table.list.rows;
  constexpr std::array keys{ImGuiKey_DownArrow, ImGuiKey_UpArrow, ImGuiKey_PageDown,
                            ImGuiKey_PageUp,    ImGuiKey_Home,    ImGuiKey_End};
  for (const ImGuiKey key : keys) ImGui::SetKeyOwner(key, ImGui::GetID("##runs"));  // else the focus would move
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyCtrl || io.KeyAlt || rows.empty()) return;
  const std::size_t from = place_of(table.cursor, rows);
  if (from < rows.size() && table.shows_cursor && !io.NavVisible) {
    const RunId run = table.cursor;
    if (ImGui::IsKeyPressed(ImGuiKey_Space, false))
      commands.push_back(SelectRun{run, !workspace.selection.runs.contains(run)});
    if (ImGui::IsKeyPressed(ImGuiKey_Enter, false)) commands.push_back(OpenRun{run});
  }
  constexpr std::ptrdiff_t page = 10;
  constexpr std::array<std::ptrdiff_t, keys.size()> steps{1, -1, page, -page, 0, 0};
  const auto pressed = std::ranges::find_if(keys, [](ImGuiKey key) { return ImGui::IsKeyPressed(key); });
  if (pressed == keys.end()) return;
  const auto last = std::ssize(rows) - 1;
  const std::ptrdiff_t step = steps[static_cast<std::size_t>(pressed - keys.begin())];
  std::ptrdiff_t to = *pressed == ImGuiKey_Home  ? 0
                      : *pressed == ImGuiKey_End ? last
                      : from == rows.size()
                          ? 0
                          : std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(from) + step, 0, last);
  // A group's head is passed over, the way that the key goes or, at the ends, the other way.
  const std::ptrdiff_t way = step < 0 || *pressed == ImGuiKey_End ? -1 : 1;
  const auto next_run = [&](std::ptrdiff_t at, std::ptrdiff_t by) {
    while (at >= 0 && at <= last && !rows[static_cast<std::size_t>(at)].entry) at += by;
    return at >= 0 && at <= last ? at : -1;
  };
  if (const std::ptrdiff_t found = next_run(to, way); found >= 0) {
    to = found;
  } else if (to = next_run(to, -way); to < 0) {
    return;  // every group is folded
  }
  table.cursor = rows[static_cast<std::size_t>(to)].entry->run.id;
  table.shows_cursor = table.scrolls_to_cursor = true;
  ImGui::SetNavCursorVisible(false);
  if (io.KeyShift && from < rows.size())
    select_between(from, static_cast<std::size_t>(to), rows, commands);
  else if (workspace.selection.runs.size() < 2)
    commands.push_back(SelectRuns{{table.cursor}});
  commands.push_back(ChooseRun{table.cursor});
}

void HistoryTable::rename(const RunEntry& entry) {
  renaming = entry.run.id;
  std::snprintf(name.data(), name.size(), "%s", entry.run.name.c_str());
}

// The keys are the table's again: the field's focus doesn't stay to take Enter and Space.
void HistoryTable::end_renaming() {
  cursor = std::exchange(renaming, 0);
  shows_cursor = true;
  ImGui::SetNavCursorVisible(false);
}

void draw_history_table(HistoryTable& table, TagPopup& tags, const Workspace& workspace, Commands& commands) {
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate | ImGuiTableFlags_Resizable |
      ImGuiTableFlags_Reorderable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
      ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_PadOuterX;
  HistoryRows& list = table.list;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(ImGui::GetStyle().CellPadding.x, px(3)));
  // Leaves room for a vertical scroll bar, which would otherwise cause a horizontal one.
  const float visible_width = room.x - ImGui::GetStyle().ScrollbarSize;
  const float names = name_width(table.list);
  const std::vector<const RunColumn*> columns = table.columns.fit(visible_width, names, list.shape);
  // A table for each set of columns, so that each keeps its own widths; the runs' order stays.
  std::string id = "##runs";
  for (const RunColumn* column : columns) id += "," + column->id;
  table.sorted_anew = std::exchange(table.drawn_as, id) != id || table.sorted_anew;
  // On a very wide screen a name would be far from its numbers.
  const float most = std::max(px(1600), wanted_width(columns, least_name_width()) * 1.3f);
  const float inner_width = std::max(std::min(visible_width, most), wanted_width(columns, least_name_width()));
  const ImVec2 size(std::min(room.x, most + ImGui::GetStyle().ScrollbarSize), room.y);
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()) + 2, flags, size, inner_width))
    return ImGui::PopStyleVar();
  ImGui::TableSetupScrollFreeze(2, 1);
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  ImGui::TableSetupColumn(
      "##on", fixed | ImGuiTableColumnFlags_NoSort | ImGuiTableColumnFlags_NoResize | ImGuiTableColumnFlags_NoReorder,
      px(20));
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch | ImGuiTableColumnFlags_NoReorder, 4.2f);
  for (const RunColumn* column : columns) {
    const bool stretches = column->kind == ColumnKind::text || column->kind == ColumnKind::tags;
    ImGuiTableColumnFlags own = stretches ? ImGuiTableColumnFlags_WidthStretch : fixed;
    if (column->kind == ColumnKind::spark) own |= ImGuiTableColumnFlags_NoSort;
    if (column->kind == ColumnKind::number) own |= ImGuiTableColumnFlags_PreferSortDescending;
    ImGui::TableSetupColumn(column->title.c_str(), own, stretches ? column->width : px(column->width));
  }
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ColumnChange change;
  draw_head_row(columns, table.columns, change);
  ImGui::PopStyleColor();
  ImGui::PopFont();
  if (std::exchange(table.sorted_anew, false)) show_order(list, columns);
  if (const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs(); specs && specs->SpecsCount > 0) {
    const int column = specs->Specs[0].ColumnIndex;
    list.sorted_by = column < 2 ? "name" : columns[static_cast<std::size_t>(column) - 2]->id;
    list.ascending = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
  }
  list.update(table.columns, workspace);
  const ColumnContext context{&workspace, list.baseline};
  const std::vector<RunId> selected(workspace.selection.runs.begin(), workspace.selection.runs.end());
  const std::vector<int> colours = workspace.colours_of(selected);
  table.colours.clear();
  for (std::size_t i = 0; i < selected.size(); ++i) table.colours[selected[i]] = colours[i];
  scroll_to_cursor(table);
  ImGui::PushItemFlag(ImGuiItemFlags_NoTabStop, true);  // the rows have keys of their own
  table.leaves_by_tab = ImGui::IsWindowFocused() && ImGui::IsKeyPressed(ImGuiKey_Tab);
  draw_rows(list.rows.size(), [&](std::size_t i) {
    const HistoryRow& row = list.rows[i];
    if (row.entry) {
      draw_row(table, tags, row, columns, context, commands);
    } else {
      draw_group_head(list, row);
    }
  });
  ImGui::PopItemFlag();
  take_dragged_order(table.columns, columns);
  ImGui::EndTable();
  ImGui::PopStyleVar();
  if (change) change(table.columns);
}

std::vector<std::vector<std::string>> shown_table(HistoryTable& table, const Workspace& workspace) {
  const ColumnContext context{&workspace, table.list.baseline};
  std::vector<const RunColumn*> columns = table.columns.wanted(table.list.shape);
  std::erase_if(columns, [](const RunColumn* column) { return column->kind == ColumnKind::spark; });
  std::vector<std::vector<std::string>> rows(1, {"run"});
  for (const RunColumn* column : columns) rows.front().push_back(column->title);
  bool any_doubt = false;
  for (const HistoryRow& row : table.list.rows) {
    if (!row.entry) continue;
    rows.push_back({row.entry->run.name});
    for (const RunColumn* column : columns) rows.back().push_back(cell_text(*column, *row.entry, context));
    const SpeedDoubt& doubt = table.list.doubt_of(*row.entry, workspace);
    rows.back().push_back(doubt.trust == Trust::trusted ? "" : std::string(to_string(doubt.trust)));
    any_doubt = any_doubt || doubt.trust != Trust::trusted;
  }
  if (any_doubt)  // as `stepladder runs` prints it
    rows.front().emplace_back("trust");
  else
    std::for_each(rows.begin() + 1, rows.end(), [](std::vector<std::string>& row) { row.pop_back(); });
  return rows;
}

}  // namespace stepladder
