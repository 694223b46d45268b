// Draws charts in a grid under headings that fold. Heights are computed before the first chart, so that the rows fill
// the window; only charts that aren't folded are drawn.
#include "app/desktop/metrics/chart_groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float heading_height = 26;

std::size_t rows_of(const ChartGroup& group, std::size_t columns) {
  return (group.charts.size() + columns - 1) / columns;
}

bool is_folded(const ChartGroup& group, const FoldedGroups& folded) {
  return !group.name.empty() && folded.has(group.name);
}

void draw_heading(const ChartGroup& group, FoldedGroups& folded) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool folds = folded.has(group.name);
  if (ImGui::InvisibleButton("##heading", ImVec2(ImGui::GetContentRegionAvail().x, px(heading_height))))
    folded.click(group.name);
  mark("group." + group.name);
  const bool is_hovered = ImGui::IsItemHovered();
  if (is_hovered) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 quiet = u32(is_hovered ? palette().text : palette().quiet);
  const float middle = at.y + px(heading_height) / 2;
  const float arm = px(4);
  if (folds) {
    draw->AddTriangleFilled(ImVec2(at.x + arm * 0.5f, middle - arm), ImVec2(at.x + arm * 0.5f, middle + arm),
                            ImVec2(at.x + arm * 1.9f, middle), quiet);
  } else {
    draw->AddTriangleFilled(ImVec2(at.x, middle - arm * 0.6f), ImVec2(at.x + 2 * arm, middle - arm * 0.6f),
                            ImVec2(at.x + arm, middle + arm * 0.8f), quiet);
  }
  const float top = middle - ImGui::GetTextLineHeight() / 2;
  const float left = at.x + px(16);
  const float room = ImGui::GetContentRegionAvail().x - px(16 + 90);
  const std::string name = cut_to(group.name, room, Cut::middle);
  draw->AddText(ImVec2(left, top), u32(palette().text), name.c_str());
  draw->AddText(ImVec2(left + ImGui::CalcTextSize(name.c_str()).x + px(8), top), u32(palette().quiet),
                grouped(std::ssize(group.charts)).c_str());
}

}  // namespace

std::vector<ChartGroup> in_groups(std::span<const std::string> group_of_each) {
  std::vector<ChartGroup> groups;
  for (std::size_t chart = 0; chart < group_of_each.size(); ++chart) {
    const std::string& name = group_of_each[chart];
    auto group = std::ranges::find(groups, name, &ChartGroup::name);
    if (group == groups.end()) group = groups.insert(name.empty() ? groups.begin() : groups.end(), {name, {}});
    group->charts.push_back(chart);
  }
  return groups;
}

void FoldedGroups::click(const std::string& group) {
  if (groups_.erase(group) == 0) groups_.insert(group);
}

nlohmann::json to_json(const FoldedGroups& folded) {
  return folded.groups_;
}

FoldedGroups folded_from(const nlohmann::json& read) {
  FoldedGroups folded;
  if (!read.is_array()) return folded;
  for (const nlohmann::json& name : read)
    if (name.is_string()) folded.groups_.insert(name.get<std::string>());
  return folded;
}

void draw_grouped_grid(const std::vector<ChartGroup>& groups, FoldedGroups& folded, const GridLook& look,
                       const std::function<void(const GridCell&)>& draw,
                       const std::function<void(std::size_t row, float height)>& below_row) {
  const auto columns = static_cast<std::size_t>(std::max(1, look.columns));
  const ImVec2 room = ImGui::GetContentRegionAvail();
  std::size_t rows = 0;
  float headings = 0;
  for (const ChartGroup& group : groups) {
    if (!group.name.empty()) headings += px(heading_height);
    if (!is_folded(group, folded)) rows += rows_of(group, columns);
  }
  const float shared = (room.y - headings) / static_cast<float>(std::max<std::size_t>(1, rows)) - look.gap;
  const float height = look.row_height > 0 ? look.row_height : std::max(shared, look.least_row_height);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 0));
  const float width = (room.x - look.gap * static_cast<float>(columns - 1)) / static_cast<float>(columns);
  std::size_t row = 0;
  for (const ChartGroup& group : groups) {
    ImGui::PushID(group.name.c_str());
    if (!group.name.empty()) draw_heading(group, folded);
    const std::size_t count = is_folded(group, folded) ? 0 : group.charts.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t column = i % columns;
      if (column > 0) ImGui::SameLine(0, look.gap);
      const std::size_t in_row = look.fills_rows ? std::min(columns, count - (i - column)) : columns;
      const auto others = static_cast<float>(columns - in_row);
      const float wide = width + (width + look.gap) * others / static_cast<float>(in_row);
      draw({.chart = group.charts[i],
            .size = ImVec2(wide, height),
            .is_above_one = i / columns + 1 < rows_of(group, columns)});
      const bool ends_row = column + 1 == columns || i + 1 == count;
      if (!ends_row) continue;
      if (below_row) {
        below_row(row, height);
      } else {
        ImGui::Dummy(ImVec2(1, look.gap));
      }
      ++row;
    }
    ImGui::PopID();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
