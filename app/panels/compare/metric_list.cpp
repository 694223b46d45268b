#include "app/panels/compare/metric_list.h"

#include <imgui.h>

#include <algorithm>
#include <set>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

std::vector<Quantity> with_prefix(const std::vector<Quantity>& metrics, std::string_view prefix) {
  std::vector<Quantity> found;
  for (const Quantity metric : metrics)
    if (prefix_of(to_string(metric)) == prefix) found.push_back(metric);
  return found;
}

}  // namespace

void MetricList::update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, Commands& commands) {
  std::vector<const std::vector<Metric>*> known;
  std::vector<std::size_t> sizes;
  for (const RunEntry* entry : runs) {
    const std::vector<Metric>* of_run = workspace.metrics(entry->run.id);
    if (!of_run) {
      commands.push_back(LoadMetrics{entry->run.id});
      continue;
    }
    known.push_back(of_run);
    sizes.push_back(of_run->size());
  }
  if (known == known_ && sizes == sizes_) return;
  known_ = std::move(known);
  sizes_ = std::move(sizes);
  std::set<std::string_view> names;
  units_.clear();
  for (const std::vector<Metric>* of_run : known_) {
    for (const Metric& metric : *of_run) {
      const Quantity quantity = quantity_named(metric.name);
      if (!metric.field.empty() || is_field(quantity)) continue;  // the field's own chart shows it
      names.insert(metric.name);
      if (!metric.unit.empty()) units_[quantity] = metric.unit;
    }
  }
  all_.clear();
  for (const std::string_view name : names) all_.push_back(quantity_named(name));
}

std::string MetricList::unit_of(Quantity metric) const {
  const auto found = units_.find(metric);
  return found == units_.end() ? std::string(stepladder::unit_of(metric)) : found->second;
}

void MetricList::draw(const std::function<void(const std::vector<Quantity>&)>& add) {
  text_quiet("Logged metrics");
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(px(300));
  const bool entered = ImGui::InputTextWithHint("##metrics", "Search, or a pattern: val/*", search_.data(),
                                                search_.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  mark("compare.metric_search");
  std::vector<Quantity> found;
  for (const Quantity metric : all_)
    if (is_meant(to_string(metric), search_.data())) found.push_back(metric);
  if (found.empty()) {
    text_quiet("No matches");
    return;
  }
  const std::string words = "Add all " + std::to_string(found.size());
  const bool pressed = search_[0] != '\0' && found.size() > 1 && ImGui::Selectable(words.c_str());
  if (search_[0] != '\0' && found.size() > 1) mark("compare.add_all");
  if (pressed || entered) {
    add(found);
    ImGui::CloseCurrentPopup();
    return;
  }
  ImGui::BeginChild("##names", ImVec2(px(300), px(std::min(260.0F, 30.0F * static_cast<float>(found.size()) + 8))));
  std::string_view prefix;
  for (const Quantity metric : found) {
    const std::string name(to_string(metric));
    ImGui::PushID(name.c_str());
    if (prefix_of(name) != prefix) {
      prefix = prefix_of(name);
      const std::vector<Quantity> group = with_prefix(found, prefix);
      const std::string title = std::string(prefix) + "/*  (" + std::to_string(group.size()) + ")";
      if (group.size() > 1 && ImGui::Selectable(title.c_str())) add(group);
      if (group.size() > 1) mark("compare.add_prefix." + std::string(prefix));
    }
    if (ImGui::Selectable(cut_to(name, px(280), Cut::middle).c_str())) add({metric});
    mark("compare.add." + name);
    ImGui::PopID();
  }
  ImGui::EndChild();
}

}  // namespace stepladder
