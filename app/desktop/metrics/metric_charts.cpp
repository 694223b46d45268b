#include "app/desktop/metrics/metric_charts.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "app/desktop/models/run_points.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float chart_height = 170;
constexpr float card_height = 196;
constexpr float least_width = 300;

// "last 0.9125", and the values that the points represent.
std::string note_of(const RunPoints& points) {
  const std::string behind = behind_text(points.behind);
  if (!points.overview || points.overview->overview.buckets.empty()) return behind;
  const Bucket& end = points.overview->overview.buckets.back();
  const bool is_finite = end.not_finite == 0 && std::isfinite(end.last);
  const std::string last = is_finite ? "last " + metric_value_text(end.last) : "";
  return last + (last.empty() || behind.empty() ? "" : ", ") + behind;
}

void draw_metric(Quantity metric, const MetricList& list, const MetricGrid& grid, SharedX& shared,
                 const Workspace& workspace, Commands& commands) {
  const std::string name(to_string(metric));
  const std::string id = "metric." + name;
  Chart chart{.id = id.c_str(),
              .title = cut_to(name, ImGui::GetContentRegionAvail().x * 0.6f, Cut::middle),
              .x_label = "step",
              .unit = list.unit_of(metric),
              .x_until = grid.x_until,
              .legend = false,
              .x_labelled = false,
              .shared = &shared,
              .commands = &commands};
  for (const MetricLine& line : grid.lines) {
    const RunPoints points = run_points(workspace, *line.run, metric, &shared, commands.data, Reads::overview);
    if (!points.levels) continue;
    Curve curve = line.look;
    points.draw_as(curve);
    curve.points = points.x.size() <= 2;
    chart.note = note_of(points);
    chart.curves.push_back(std::move(curve));
  }
  if (chart.curves.empty()) {
    text_strong(chart.title);
    return empty_state("Reading...", "");
  }
  draw_chart(chart);
}

}  // namespace

void draw_metric_charts(const std::vector<Quantity>& metrics, const MetricList& list, const MetricGrid& grid,
                        FoldedGroups& folded, SharedX& shared, const Workspace& workspace, Commands& commands) {
  if (metrics.size() > most_shown_metrics) {
    const std::vector<Quantity> first(metrics.begin(), metrics.begin() + most_shown_metrics);
    draw_metric_charts(first, list, grid, folded, shared, workspace, commands);
    return text_quiet_wrapped(more_metrics_text(metrics.size() - most_shown_metrics));
  }
  std::vector<std::string> groups;
  for (const Quantity metric : metrics) groups.push_back(list.group_of(metric));
  const float gap = px(grid.in_cards ? 16 : 12);
  const std::vector<ChartGroup> grouped = in_groups(groups);
  std::size_t most = 1;  // charts of one group
  for (const ChartGroup& group : grouped) most = std::max(most, group.charts.size());
  const int fitting = std::clamp(static_cast<int>(ImGui::GetContentRegionAvail().x / px(least_width)), 1, 4);
  const int columns = std::min(fitting, static_cast<int>(std::min<std::size_t>(most, 4)));
  const GridLook look{.columns = columns, .row_height = px(grid.in_cards ? card_height : chart_height), .gap = gap};
  draw_grouped_grid(grouped, folded, look, [&](const GridCell& cell) {
    if (!ImGui::IsRectVisible(cell.size)) return ImGui::Dummy(cell.size);
    const Quantity metric = metrics[cell.chart];
    const std::string id(to_string(metric));
    if (grid.in_cards)
      begin_card(id.c_str(), cell.size);
    else
      ImGui::BeginChild(id.c_str(), cell.size);
    draw_metric(metric, list, grid, shared, workspace, commands);
    if (grid.in_cards)
      end_card();
    else
      ImGui::EndChild();
  });
}

}  // namespace stepladder
