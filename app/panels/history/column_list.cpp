// Draws the list from which the user chooses History's columns. A project may have thousands of metrics, so only
// visible matches are drawn; all matches can be added at once if they are few.
#include "app/panels/history/column_list.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/desktop/models/project_metrics.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float list_width = 620;

void draw_choice(HistoryColumns& columns, const std::string& id, const std::string& title) {
  bool on = columns.shows(id);
  const bool is_full = !on && columns.shown.size() >= most_columns_shown;
  ImGui::BeginDisabled(is_full);
  if (ImGui::Checkbox((title + "##" + id).c_str(), &on)) {
    if (on) {
      columns.add(id);
    } else {
      columns.remove(id);
    }
  }
  ImGui::EndDisabled();
  mark("history.column." + id);
}

// The columns of one kind whose titles are meant; nothing if there are none.
void draw_plain_columns(HistoryColumns& columns, const char* title, bool of_recipe, const char* search) {
  std::vector<const RunColumn*> found;
  for (const RunColumn& column : columns.known)
    if (column.id.starts_with("recipe.") == of_recipe && is_meant(column.title, search)) found.push_back(&column);
  if (found.empty()) return;
  spacing(4);
  text_quiet(title);
  if (!ImGui::BeginTable(title, 4, ImGuiTableFlags_SizingFixedFit)) return;
  for (const RunColumn* column : found) {
    ImGui::TableNextColumn();
    draw_choice(columns, column->id, column->title);
  }
  ImGui::EndTable();
}

}  // namespace

// last, min ... and the value itself or beside the baseline's.
void ColumnList::draw_figures() {
  using Kind = MetricFigure::Kind;
  using Shows = MetricColumn::Shows;
  for (const Kind kind : {Kind::last, Kind::min, Kind::max, Kind::median, Kind::at}) {
    const std::string word = kind == Kind::at ? "at step" : std::string(to_string(kind));
    if (kind != Kind::last) same_line(4);
    if (chip(word.c_str(), metric.figure.kind == kind)) metric.figure.kind = kind;
    mark("history.figure." + std::string(to_string(kind)));
  }
  if (metric.figure.kind == Kind::at) {
    same_line(6);
    ImGui::SetNextItemWidth(px(80));
    auto typed = static_cast<double>(metric.figure.step);
    if (step.draw("##step", "step", typed) && !is_missing(typed)) metric.figure.step = std::llround(typed);
    mark("history.figure.step");
  } else {
    metric.figure.step = 0;
    step.show(0);
  }
  for (const auto& [shows, word] : {std::pair(Shows::value, "value"), std::pair(Shows::difference, "vs baseline"),
                                    std::pair(Shows::factor, "factor")}) {
    same_line(shows == Shows::value ? 20 : 4);
    if (chip(word, metric.shows == shows)) metric.shows = shows;
    mark("history.shows." + std::to_string(static_cast<int>(shows)));
  }
}

void ColumnList::draw_metrics(HistoryColumns& columns, const Workspace& workspace, bool entered) {
  spacing(4);
  text_quiet("Logged metrics");
  if (!workspace.project_metrics) return text_quiet("Reading metrics...");
  draw_figures();
  std::vector<const Metric*> found;
  for (const Metric& each : workspace.project_metrics->names)
    if (is_meant(each.name, search.data())) found.push_back(&each);
  if (found.empty()) return text_quiet("No matches");
  if (metric.figure.kind == MetricFigure::Kind::at && metric.figure.step == 0)
    return text_quiet("Type the number of a step to choose metrics at it.");
  const auto id = [&](const Metric& each) {
    MetricColumn column = metric;
    column.figure.metric = each.name;
    return id_of(column);
  };
  constexpr std::size_t most_at_once = 24;
  const bool adds_all = search[0] != 0 && found.size() > 1 && found.size() <= most_at_once;
  const std::string words = "Add all " + std::to_string(found.size());
  const bool pressed = adds_all && ImGui::Selectable(words.c_str(), false, ImGuiSelectableFlags_NoAutoClosePopups);
  if (adds_all) mark("history.add_all");
  if (pressed || (entered && (adds_all || found.size() == 1)))
    for (const Metric* each : found) columns.add(id(*each));
  const float row = ImGui::GetFrameHeightWithSpacing();
  ImGui::BeginChild("##metrics", ImVec2(px(list_width), std::min(px(230), row * static_cast<float>(found.size()))),
                    ImGuiChildFlags_NavFlattened);
  draw_rows(found.size(), row, [&](std::size_t i) {
    const Metric& each = *found[i];
    draw_choice(columns, id(each), cut_to(each.name, px(list_width - 120), Cut::middle));
    if (each.unit.empty()) return;
    same_line(8);
    text_quiet(each.unit);
  });
  ImGui::EndChild();
}

void ColumnList::draw(HistoryColumns& columns, const Workspace& workspace) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), px(3)));
  ImGui::SetNextWindowSizeConstraints(ImVec2(px(300), 0), ImVec2(px(900), px(680)));
  popup_at_item();
  if (ImGui::BeginPopup("##columns")) {
    if (ImGui::IsWindowAppearing()) {
      search[0] = 0;
      ImGui::SetKeyboardFocusHere();
    }
    ImGui::SetNextItemWidth(px(list_width) - button_width("Reset") - ImGui::GetStyle().ItemSpacing.x);
    const bool entered = ImGui::InputTextWithHint("##search", "Search columns, or a pattern: val/*", search.data(),
                                                  search.size(), ImGuiInputTextFlags_EnterReturnsTrue);
    mark("history.column_search");
    close_popup_at_escape();
    ImGui::SameLine();
    if (quiet_button("Reset", "history.column_reset")) columns.shown.clear();  // update() fills it
    ImGui::SetItemTooltip("The columns of a new project; drag heads to order them, right-click one to remove it");
    draw_metrics(columns, workspace, entered && search[0] != 0);
    draw_plain_columns(columns, "Measured values and metadata", false, search.data());
    draw_plain_columns(columns, "Recipe", true, search.data());
    if (columns.shown.size() >= most_columns_shown)
      text_quiet("The table has " + std::to_string(most_columns_shown) + " columns, which is the most.");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

}  // namespace stepladder
