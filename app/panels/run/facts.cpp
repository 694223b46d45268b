// Draws a run's recipe and environment as names and values, next to another run's or the current environment's. Nested
// JSON becomes `a.b`; any project's JSON may be shown, so nothing is assumed about its fields.
#include <imgui.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/panels/run/parts.h"

namespace stepladder {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

// Nested values are named "a.b". An empty text is said as `describe` of engine/recipe.h says it.
void flatten(const nlohmann::json& json, const std::string& name, Facts& facts) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) flatten(value, name.empty() ? key : name + "." + key, facts);
  } else if (!name.empty()) {
    const std::string value = json.is_string() ? json.get<std::string>() : json.dump();
    facts.emplace_back(name, !value.empty() ? value : name == "data" ? "synthetic" : "none");
  }
}

Facts facts_of(const std::string& text) {
  Facts facts;
  flatten(nlohmann::json::parse(text, nullptr, false), "", facts);
  return facts;
}

// A table of names and values, with the other run's values if there is one; then those that differ come first.
void draw_facts(const char* id, const Facts& own, const Facts* other, const std::string& other_name,
                bool only_differences) {
  std::map<std::string, std::string> theirs;
  if (other) theirs = {other->begin(), other->end()};
  struct Row {
    const std::string* name;
    const std::string* own;
    const std::string* other;
  };
  static const std::string none = "-";
  std::vector<Row> rows;
  for (const auto& [name, value] : own) {
    const auto found = theirs.find(name);
    const std::string* held = found == theirs.end() ? &none : &found->second;
    if (other && only_differences && *held == value) continue;
    rows.push_back({&name, &value, held});
  }
  if (other) {
    for (const auto& held : *other) {
      const bool mine = std::ranges::any_of(own, [&](const auto& fact) { return fact.first == held.first; });
      if (!mine) rows.push_back({&held.first, &none, &held.second});
    }
  }
  if (other) std::ranges::stable_partition(rows, [](const Row& row) { return *row.own != *row.other; });
  if (rows.empty()) return text_quiet(other ? "No differences." : "Not recorded.");
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp;
  if (!ImGui::BeginTable(table_id(id, other ? 3 : 2).c_str(), other ? 3 : 2, flags, ImGui::GetContentRegionAvail()))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("setting", ImGuiTableColumnFlags_WidthFixed, px(170));
  // Explicit weights, so that a long name in the head doesn't narrow the values.
  ImGui::TableSetupColumn("this run", ImGuiTableColumnFlags_WidthStretch, 1);
  if (other) ImGui::TableSetupColumn("other", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  std::vector<std::string> heads{"setting", "this run"};
  if (other) heads.push_back(other_name);
  for (const std::string& head : heads) {
    if (ImGui::TableNextColumn())
      text_cut(head, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size, Cut::middle);
  }
  for (const Row& row : rows) {
    const bool differs = other && *row.own != *row.other;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_cut(*row.name, ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, 13.5f);
    mark("run.setting." + *row.name);
    ImGui::TableNextColumn();
    text_cut(*row.own, ImGui::GetContentRegionAvail().x, differs ? palette().accent : palette().text,
             differs ? fonts().semibold : fonts().regular, 13.5f);
    if (other) {
      ImGui::TableNextColumn();
      text_cut(*row.other, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, 13.5f);
    }
  }
  ImGui::EndTable();
}

void draw_against(FactsShown& facts, const Workspace& workspace, const RunEntry& shown) {
  field_name("compare with", 6);
  const RunEntry* other = workspace.find(facts.against);
  ImGui::SetNextItemWidth(px(260));
  if (ImGui::BeginCombo("##against", combo_text(other ? other->run.name : "none", px(260)).c_str())) {
    if (ImGui::Selectable("none", !other)) facts.against = 0;
    std::vector<const RunEntry*> offered;
    if (shown.run.ladder) offered = workspace.runs_of(*shown.run.ladder);
    for (const RunId id : workspace.selection.runs) {
      const RunEntry* selected = workspace.find(id);
      if (selected && selected->run.ladder != shown.run.ladder) offered.push_back(selected);
    }
    bool takes_first = false;
    const std::string typed = list_search("Search runs", offered.size(), &takes_first);
    bool marks_first = !typed.empty();
    for (const RunEntry* entry : offered) {
      if (entry->run.id == shown.run.id || !holds(entry->run.name, typed)) continue;
      const std::string item = entry->run.name + "##" + std::to_string(entry->run.id);
      const bool is_taken = std::exchange(takes_first, false);
      if (ImGui::Selectable(item.c_str(), entry->run.id == facts.against) || is_taken) facts.against = entry->run.id;
      if (is_taken) ImGui::CloseCurrentPopup();
      if (std::exchange(marks_first, false)) mark_taken_by_enter();
    }
    ImGui::EndCombo();
  }
  mark("run.against");
  if (other) {
    same_line(8);
    if (chip("differences only", facts.only_differences)) facts.only_differences = !facts.only_differences;
    mark("run.differences");
  }
}

}  // namespace

void FactsShown::draw_recipe(const Workspace& workspace, const RunEntry& shown) {
  draw_against(*this, workspace, shown);
  const RunEntry* other = workspace.find(against);
  const Facts own = facts_of(shown.run.recipe);
  if (own.empty()) return text_quiet_wrapped("No recipe: the imported log doesn't state one.");
  const Facts theirs = other ? facts_of(other->run.recipe) : Facts{};
  draw_facts("##recipe", own, other ? &theirs : nullptr, other ? other->run.name : "", only_differences);
}

void FactsShown::draw_environment(const Workspace& workspace, const RunEntry& shown) {
  const Facts own = facts_of(shown.run.environment);
  if (own.empty()) return text_quiet_wrapped("No environment was recorded for this run.");
  if (shown.run.source == "launched") {
    text_quiet("Differences from the current environment are blue.");
    same_line(12);
    if (chip("differences only", only_differences)) only_differences = !only_differences;
    const Facts now = facts_of(workspace.environment);
    return draw_facts("##environment", own, &now, "current environment", only_differences);
  }
  draw_facts("##environment", own, nullptr, "", false);
}

}  // namespace stepladder
