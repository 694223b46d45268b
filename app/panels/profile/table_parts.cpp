// Draws cells, rows and sortable heads for the Profile view's tables.
#include "app/panels/profile/table_parts.h"

#include <cmath>

#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr ImGuiTableFlags table_flags =
    ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp;

// A head that sorts: at first the largest number or the first letter on top, then the other way round, then not at all.
void draw_head(const TableHead& head, TableSort& sort) {
  ImGui::TableNextColumn();
  const ImVec2 at = ImGui::GetCursorPos(), corner = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  const bool is_sorted = head.column >= 0 && sort.column == head.column;
  const float arrow = is_sorted ? px(11) : 0;
  if (head.column >= 0 && room > 1) {
    if (ImGui::InvisibleButton(("##head" + std::to_string(head.column)).c_str(),
                               ImVec2(room, ImGui::GetTextLineHeight()))) {
      const bool begins_descending = head.is_right;
      if (!is_sorted)
        sort = {head.column, begins_descending};
      else if (sort.descending == begins_descending)
        sort.descending = !sort.descending;
      else
        sort = {};
    }
    mark("profile.sort." + std::to_string(head.column));
    if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    ImGui::SetCursorPos(at);
  }
  const ImVec4& colour = is_sorted ? palette().text : palette().quiet;
  if (head.is_right)
    text_right(head.name, at.x + room - px(4) - arrow, fonts().regular, small_size, &colour);
  else
    text_cut(head.name, room - arrow, colour, fonts().regular, small_size);
  if (!is_sorted) return;
  const float width = ImGui::CalcTextSize(head.name.c_str()).x * small_size / text_size;
  const float x = head.is_right ? corner.x + room - px(9) : corner.x + std::min(width + px(8), room - px(6));
  const float y = corner.y + ImGui::GetTextLineHeight() / 2, up = sort.descending ? -px(2.5f) : px(2.5f);
  ImGui::GetWindowDrawList()->AddTriangleFilled(ImVec2(x - px(4), y + up), ImVec2(x + px(4), y + up), ImVec2(x, y - up),
                                                u32(palette().accent));
}

}  // namespace

// ImGui keeps the widths of columns by the table's id and a column's place, so a table with other columns has another.
bool begin_table(const char* name, const std::vector<TableHead>& heads, TableSort& sort, int frozen_rows) {
  std::string id = name;
  for (const TableHead& head : heads)
    id += head.width > 0 ? " " + std::to_string(std::lround(px(head.width))) : " rest";
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(heads.size()), table_flags, ImGui::GetContentRegionAvail()))
    return false;
  ImGui::TableSetupScrollFreeze(0, frozen_rows);
  for (const TableHead& head : heads)
    ImGui::TableSetupColumn(head.name.c_str(),
                            head.width > 0 ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
                            head.width > 0 ? px(head.width) : 1);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (const TableHead& head : heads) draw_head(head, sort);
  return true;
}

void left_text(const std::string& text, const ImVec4& colour, ImFont* font) {
  text_cut(text, ImGui::GetContentRegionAvail().x, colour, font ? font : fonts().regular, table_cell_size);
}

void left_cell(const std::string& text, const ImVec4& colour, ImFont* font) {
  ImGui::TableNextColumn();
  left_text(text, colour, font);
}

void begin_row(std::size_t number, const SliceChoice& row, TableUse& use) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool is_chosen = !use.chosen.title.empty() &&
                         (row.kind ? use.chosen.kind == row.kind
                                   : std::any_of(row.names.begin(), row.names.end(),
                                                 [&](const std::string& name) { return use.chosen.has(name); }));
  const ImVec2 at = ImGui::GetCursorPos();
  ImGui::PushID(static_cast<int>(number));
  if (ImGui::Selectable("##row", is_chosen, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, ImGui::GetTextLineHeight())))
    use.clicked = is_chosen ? SliceChoice{} : row;
  mark("profile.row." + std::to_string(number));
  ImGui::PopID();
  ImGui::SetCursorPos(at);
}

void right_cell(const std::string& text, const ImVec4* colour, ImFont* font) {
  ImGui::TableNextColumn();
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - px(4), font ? font : fonts().regular,
             table_cell_size, colour);
}

void kind_text(OperatorKind kind) {
  const bool is_named = ImGui::GetContentRegionAvail().x > px(60);
  colour_square(kind_colour(kind));
  if (!is_named) {
    wrapped_tooltip(std::string(to_string(kind)), 360);
    return;
  }
  same_line(6);
  text_cut(std::string(to_string(kind)), ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular,
           table_cell_size);
}

std::string change_text(double ms, double whole_ms) {
  if (std::fabs(ms) < 0.0005 * whole_ms) return "=";
  return (ms < 0 ? "-" : "+") + ms_figure(std::fabs(ms), whole_ms);
}

const ImVec4& change_colour(double ms, double whole_ms, bool is_verdict) {
  if (std::fabs(ms) < 0.002 * whole_ms) return palette().quiet;
  return !is_verdict ? palette().text : ms < 0 ? palette().good : palette().bad;
}

}  // namespace stepladder
