#include "app/panels/history/columns.h"

#include <imgui.h>

#include <algorithm>
#include <array>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

void draw_column_choice(HistoryColumns& columns, const RunColumn& column) {
  const auto place = std::find(columns.shown.begin(), columns.shown.end(), column.id);
  bool on = place != columns.shown.end();
  ImGui::TableNextColumn();
  if (ImGui::Checkbox((column.title + "##" + column.id).c_str(), &on)) {
    if (on) {
      columns.shown.push_back(column.id);
    } else {
      columns.shown.erase(place);
    }
  }
  mark("history.column." + column.id);
}

}  // namespace

void HistoryColumns::update(const Workspace& workspace) {
  if (known_for == workspace.version) return;
  known_for = workspace.version;
  known = measured_columns();
  for (RunColumn& column : recipe_columns(workspace)) known.push_back(std::move(column));
  if (shown.empty()) {
    for (const RunColumn& column : known) {
      if (column.at_first) shown.push_back(column.id);
    }
  }
}

const RunColumn* HistoryColumns::find(const std::string& id) const {
  const auto found = std::find_if(known.begin(), known.end(), [&](const RunColumn& c) { return c.id == id; });
  return found == known.end() ? nullptr : &*found;
}

std::vector<const RunColumn*> HistoryColumns::fit(float width) {
  std::vector<const RunColumn*> columns;
  std::vector<std::string> at_first;
  for (const std::string& id : shown) {
    if (const RunColumn* column = find(id)) columns.push_back(column);
  }
  for (const RunColumn& column : known) {
    if (column.at_first) at_first.push_back(column.id);
  }
  left_out.clear();
  if (shown != at_first) return columns;
  constexpr std::array given_up{"hardware", "tags",         "stage",      "val_loss_last", "created",
                                "factor",   "dt_ms_median", "spark_loss", "loss_last"};
  for (const char* id : given_up) {
    if (wanted_width(columns) <= width) break;
    std::erase_if(columns, [&](const RunColumn* column) { return column->id == id; });
    left_out.push_back(find(id)->title);
  }
  return columns;
}

float wanted_width(const std::vector<const RunColumn*>& columns) {
  float sum = px(200);
  for (const RunColumn* column : columns) {
    const bool stretches = column->kind == ColumnKind::text || column->kind == ColumnKind::tags;
    sum += px(stretches ? 90 * column->width : column->width) + px(20);
  }
  return sum;
}

void draw_column_popup(HistoryColumns& columns) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(4), px(3)));
  ImGui::SetNextWindowSizeConstraints(ImVec2(px(300), 0), ImVec2(px(900), px(620)));
  popup_at_item();
  if (ImGui::BeginPopup("##columns")) {
    for (const bool of_recipe : {false, true}) {
      if (of_recipe) ImGui::Dummy(ImVec2(0, px(4)));
      text_quiet(of_recipe ? "Recipe" : "Metrics and metadata");
      if (!ImGui::BeginTable(of_recipe ? "##recipe" : "##measured", 4, ImGuiTableFlags_SizingFixedFit)) continue;
      for (const RunColumn& column : columns.known) {
        if (column.id.starts_with("recipe.") == of_recipe) draw_column_choice(columns, column);
      }
      ImGui::EndTable();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

void draw_left_out_columns(const HistoryColumns& columns) {
  if (columns.left_out.empty()) return;
  const std::string words = std::to_string(columns.left_out.size()) + " don't fit";
  flow_for(ImGui::CalcTextSize(words.c_str()).x);
  ImGui::AlignTextToFramePadding();
  text_quiet(words);
  mark("history.left_out");
  std::string titles;
  for (const std::string& title : columns.left_out) titles += (titles.empty() ? "" : ", ") + title;
  wrapped_tooltip("No room for: " + titles + ". The table scrolls sideways once you choose columns yourself.", px(320));
}

}  // namespace stepladder
