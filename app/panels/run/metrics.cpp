#include "app/panels/run/metrics.h"

#include <imgui.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/desktop/fields.h"
#include "app/desktop/models/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr float chart_height = 170;
constexpr float least_width = 300;

// Those of the run that are meant, by name: metrics of one prefix follow each other.
std::vector<const Metric*> meant(const std::vector<Metric>& metrics, std::string_view pattern) {
  std::vector<const Metric*> found;
  for (const Metric& metric : metrics)
    if (metric.field.empty() && is_meant(metric.name, pattern)) found.push_back(&metric);
  return found;
}

void draw_metric(const Metric& metric, SharedX& shared, const Workspace& workspace, const RunEntry& shown,
                 const RunEntry* against, Commands& commands) {
  const Quantity quantity = quantity_named(metric.name);
  const std::string id = "metric." + metric.name;
  Chart chart{.id = id.c_str(),
              .title = cut_to(metric.name, ImGui::GetContentRegionAvail().x * 0.7f, Cut::middle),
              .x_label = "step",
              .unit = metric.unit,
              .legend = false,
              .x_labelled = false,
              .shared = &shared,
              .commands = &commands};
  const auto add = [&](const RunEntry& entry, Curve curve) {
    const RunPoints points = run_points(workspace, entry, quantity, &shared, commands, Reads::overview);
    if (!points.levels || points.x.empty()) return;
    points.draw_as(curve);
    curve.points = points.x.size() <= 2;
    chart.note = behind_text(points.behind);
    chart.curves.push_back(std::move(curve));
  };
  if (against) add(*against, {.label = against->run.name, .colour = faded(palette().quiet, 0.7f), .weight = 1});
  add(shown,
      {.label = shown.run.name + "##own", .colour = rung_colour(workspace.colour_of(shown.run)), .weight = 1.6f});
  draw_chart(chart);
}

}  // namespace

void RunMetrics::draw(SharedX& shared, const Workspace& workspace, const RunEntry& shown, const RunEntry* against,
                      Commands& commands) {
  const std::vector<Metric>* metrics = workspace.metrics(shown.run.id);
  if (!metrics) return commands.push_back(LoadMetrics{shown.run.id});
  if (meant(*metrics, "").empty())
    return empty_state("No other metrics", "Numbers that a script or log names appear here: val/acc, reward.");
  ImGui::SetNextItemWidth(px(260));
  ImGui::InputTextWithHint("##search", "Search, or a pattern: val/*", search.data(), search.size());
  mark("run.metric_search");
  const std::vector<const Metric*> found = meant(*metrics, search.data());
  ImGui::SameLine(0, px(10));
  ImGui::AlignTextToFramePadding();
  text_quiet(found.empty() ? "No matches" : grouped(std::ssize(found)) + (found.size() == 1 ? " metric" : " metrics"));
  const float gap = px(12);
  const float room = ImGui::GetContentRegionAvail().x;
  const int columns = std::clamp(static_cast<int>(room / px(least_width)), 1, 4);
  const ImVec2 size((room - gap * static_cast<float>(columns - 1)) / static_cast<float>(columns), px(chart_height));
  int column = 0;
  std::string_view prefix;
  for (const Metric* metric : found) {
    const bool begins_group = prefix_of(metric->name) != prefix;
    if (begins_group) {
      prefix = prefix_of(metric->name);
      text_quiet(std::string(prefix));
      column = 0;
    }
    if (column > 0) ImGui::SameLine(0, gap);
    column = (column + 1) % columns;
    if (!ImGui::IsRectVisible(size)) {
      ImGui::Dummy(size);
      continue;
    }
    ImGui::BeginChild(metric->name.c_str(), size);
    draw_metric(*metric, shared, workspace, shown, against, commands);
    ImGui::EndChild();
  }
}

}  // namespace stepladder
