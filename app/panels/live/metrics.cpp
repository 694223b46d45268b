// Live's section for logged metrics. The choice is by names and patterns, so that it also holds for later runs; drawing
// is metric_charts.h's.
#include "app/panels/live/metrics.h"

#include <imgui.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {

bool ChosenMetrics::has(Quantity metric) const {
  if (all_) return false;
  const std::string name(to_string(metric));
  return names_.contains(name) ||
         std::ranges::any_of(meant_by_, [&](const std::string& text) { return is_meant(name, text); });
}

std::vector<Quantity> ChosenMetrics::of(const MetricList& list) const {
  if (all_) return list.all();
  std::vector<Quantity> found;
  for (const Quantity metric : list.all())
    if (has(metric)) found.push_back(metric);
  return found;
}

void ChosenMetrics::choose(const MetricChoice& choice, const MetricList& list) {
  if (choice.metrics.size() == 1 && choice.meant_by.empty() && has(choice.metrics.front())) {
    std::set<std::string> rest;
    for (const Quantity metric : of(list))
      if (metric != choice.metrics.front()) rest.emplace(to_string(metric));
    names_ = std::move(rest);
    meant_by_.clear();
    return;
  }
  all_ = false;
  if (!choice.meant_by.empty()) {
    meant_by_.insert(choice.meant_by);
  } else {
    for (const Quantity metric : choice.metrics) names_.emplace(to_string(metric));
  }
}

nlohmann::json to_json(const ChosenMetrics& chosen) {
  return {{"all", chosen.all_}, {"names", chosen.names_}, {"meant_by", chosen.meant_by_}};
}

ChosenMetrics chosen_from(const nlohmann::json& read) {
  ChosenMetrics chosen;
  if (!read.is_object()) return chosen;
  const auto texts = [&](const char* key) {
    std::set<std::string> found;
    const auto list = read.find(key);
    if (list == read.end() || !list->is_array()) return found;
    for (const nlohmann::json& text : *list)
      if (text.is_string()) found.insert(text.get<std::string>());
    return found;
  };
  const auto all = read.find("all");
  chosen.all_ = all == read.end() || !all->is_boolean() || all->get<bool>();
  chosen.names_ = texts("names");
  chosen.meant_by_ = texts("meant_by");
  return chosen;
}

void LiveMetrics::draw_head(std::size_t shown) {
  const std::size_t logged = list.all().size();
  const char* const words = "Choose charts";
  const float right = ImGui::GetContentRegionMax().x;
  ImGui::AlignTextToFramePadding();
  text_strong("Metrics");
  same_line(10);
  ImGui::AlignTextToFramePadding();
  text_quiet(shown == logged ? grouped(std::ssize(list.all()))
                             : grouped(shown) + " of " + grouped(std::ssize(list.all())));
  ImGui::SameLine(right - button_width(words));
  if (ImGui::Button(words)) ImGui::OpenPopup("##choose");
  mark("live.choose");
  popup_at_item();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##choose")) {
    if (ImGui::Selectable("All metrics", chosen.all(), ImGuiSelectableFlags_NoAutoClosePopups)) chosen.show_all();
    mark("live.choose_all");
    ImGui::Separator();
    list.draw(
        "live", [&](const MetricChoice& choice) { chosen.choose(choice, list); },
        [&](Quantity metric) { return chosen.has(metric); });
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void LiveMetrics::draw(const MetricGrid& grid, SharedX& shared, const Workspace& workspace, Commands& commands) {
  const std::vector<Quantity> shown = chosen.of(list);
  draw_head(shown.size());
  if (!shown.empty()) return draw_metric_charts(shown, list, grid, folded, shared, workspace, commands);
  ImGui::BeginChild("##none", ImVec2(0, px(120)));
  empty_state("No chosen metric in this run", "Choose charts, at the right, offers those that it logs.");
  ImGui::EndChild();
}

}  // namespace stepladder
