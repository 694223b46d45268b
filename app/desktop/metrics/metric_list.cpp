// Collects the metrics of the shown runs and draws the list to choose from. A project may have a hundred thousand
// names, so the list is rebuilt only when a run's names have changed, and shows the first thousand matches.
#include "app/desktop/metrics/metric_list.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <span>

#include "app/desktop/fields.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/importers/trackers/metric_names.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr float list_width = 300;

std::vector<Quantity> with_prefix(const std::vector<Quantity>& metrics, std::string_view prefix) {
  std::vector<Quantity> found;
  for (const Quantity metric : metrics)
    if (prefix_of(to_string(metric)) == prefix) found.push_back(metric);
  return found;
}

}  // namespace

std::string metric_value_text(double value) {
  const double size = std::fabs(value);
  if (!std::isfinite(value) || size >= 1e4 || (size > 0 && size < 1e-4)) return compact(value);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string more_metrics_text(std::size_t more) {
  return "and " + grouped(more) + " more; a search narrows them";
}

std::string group_by_prefix(Quantity quantity) {
  const std::string_view prefix = is_field(quantity) ? "" : prefix_of(to_string(quantity));
  return prefix.empty() ? "" : std::string(prefix) + "/";
}

void MetricList::update(const Workspace& workspace, const std::vector<const RunEntry*>& runs, DataRequests& requests) {
  std::vector<const std::vector<Metric>*> known;
  std::vector<std::size_t> sizes;
  for (const RunEntry* entry : runs) {
    const std::vector<Metric>* of_run = workspace.metrics(entry->run.id);
    if (!of_run) {
      requests.metrics.push_back(entry->run.id);
      continue;
    }
    known.push_back(of_run);
    sizes.push_back(of_run->size());
  }
  is_complete_ = known.size() == runs.size();
  if (known == known_to_runs_ && sizes == sizes_) return;
  known_to_runs_ = std::move(known);
  sizes_ = std::move(sizes);
  ++version_;
  is_cut_ = std::ranges::any_of(sizes_, [](std::size_t size) { return size >= most_listed_metrics; });
  std::set<std::string_view> names;
  known_.clear();
  for (const std::vector<Metric>* of_run : known_to_runs_) {
    for (const Metric& metric : *of_run) {
      const Quantity quantity = quantity_named(metric.name);
      if (!metric.field.empty() || is_field(quantity)) continue;  // the field's own chart shows it
      names.insert(metric.name);
      Known& now = known_[quantity];
      if (!metric.unit.empty()) now.unit = metric.unit;
      if (metric.direction != Direction::unknown) now.direction = metric.direction;
      if (!metric.section.empty()) now.section = metric.section;
    }
  }
  all_.clear();
  for (const std::string_view name : names) all_.push_back(quantity_named(name));
  const auto rate = std::ranges::find_if(names, [](std::string_view name) {
    const MetricMeaning meaning = meaning_of_metric(name);
    return meaning.role == MetricRole::tokens_per_s && meaning.scale == 1;
  });
  throughput_ = rate == names.end() ? Quantity::tokens_per_s : quantity_named(*rate);
}

std::string MetricList::unit_of(Quantity quantity) const {
  const auto found = known_.find(quantity);
  return found == known_.end() ? std::string(stepladder::unit_of(quantity)) : found->second.unit;
}

Direction MetricList::direction_of(Quantity quantity) const {
  const auto found = known_.find(quantity);
  return found == known_.end() ? better_direction(quantity) : found->second.direction;
}

std::string MetricList::group_of(Quantity quantity) const {
  const auto found = known_.find(quantity);
  const bool has_section = found != known_.end() && !found->second.section.empty();
  return has_section ? found->second.section : group_by_prefix(quantity);
}

std::vector<Quantity> MetricList::meant_by(std::string_view text) const {
  std::vector<Quantity> found;
  for (const Quantity metric : all_)
    if (is_meant(to_string(metric), text)) found.push_back(metric);
  return found;
}

void MetricList::draw(const std::string& view, const Take& take, const IsShown& is_shown) {
  text_quiet("Logged metrics");
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(px(list_width));
  const bool entered = ImGui::InputTextWithHint("##metrics", "Search, or a pattern: val/*", search_.data(),
                                                search_.size(), ImGuiInputTextFlags_EnterReturnsTrue);
  mark(view + ".metric_search");
  const std::vector<Quantity> found = meant_by(search_.data());
  if (found.empty()) {
    text_quiet("No matches");
    return;
  }
  const std::string words = "Add all " + std::to_string(found.size());
  const bool offers_all = search_[0] != '\0' && found.size() > 1;
  const bool pressed = offers_all && ImGui::Selectable(words.c_str());
  if (offers_all) mark(view + ".add_all");
  if (pressed || entered) {
    take({.metrics = found, .meant_by = search_.data()});
    ImGui::CloseCurrentPopup();
    return;
  }
  draw_names(view, found, take, is_shown);
}

void MetricList::draw_names(const std::string& view, const std::vector<Quantity>& found, const Take& take,
                            const IsShown& is_shown) const {
  const float height = std::min(260.0F, 30.0F * static_cast<float>(found.size()) + 8);
  ImGui::BeginChild("##names", ImVec2(px(list_width), px(height)));
  std::string_view prefix;
  for (const Quantity metric : std::span(found).first(std::min(found.size(), most_shown_metrics))) {
    const std::string name(to_string(metric));
    ImGui::PushID(name.c_str());
    if (prefix_of(name) != prefix) {
      prefix = prefix_of(name);
      const std::vector<Quantity> group = with_prefix(found, prefix);
      const std::string pattern = std::string(prefix) + "/*";
      const std::string title = pattern + "  (" + std::to_string(group.size()) + ")";
      if (group.size() > 1 && ImGui::Selectable(title.c_str())) take({.metrics = group, .meant_by = pattern});
      if (group.size() > 1) mark(view + ".add_prefix." + std::string(prefix));
    }
    const bool shown = is_shown && is_shown(metric);
    if (ImGui::Selectable(cut_to(name, px(list_width - 20), Cut::middle).c_str(), shown))
      take({.metrics = {metric}, .meant_by = {}});
    mark(view + ".add." + name);
    ImGui::PopID();
  }
  if (found.size() > most_shown_metrics) text_quiet_wrapped(more_metrics_text(found.size() - most_shown_metrics));
  ImGui::EndChild();
}

}  // namespace stepladder
