#include "app/panels/run/metrics.h"

#include <imgui.h>

#include <string>
#include <vector>

#include "app/desktop/metrics/metric_charts.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {

void RunMetrics::draw(SharedX& shared, const Workspace& workspace, const RunEntry& shown, const RunEntry* against,
                      Commands& commands) {
  list.update(workspace, {&shown}, commands.data);
  if (list.all().empty()) {
    if (list.is_complete())
      empty_state("No other metrics", "Numbers that a script or log names appear here: val/acc, reward.");
    return;
  }
  ImGui::SetNextItemWidth(px(260));
  ImGui::InputTextWithHint("##search", "Search, or a pattern: val/*", search.data(), search.size());
  mark("run.metric_search");
  const std::vector<Quantity> found = list.meant_by(search.data());
  same_line(10);
  ImGui::AlignTextToFramePadding();
  text_quiet((found.empty() ? "No matches" : plural(std::ssize(found), "metric")) +
             (list.is_cut() ? " of the first " + grouped(most_listed_metrics) + " by name" : ""));
  std::vector<MetricLine> lines;
  if (against)
    lines.push_back({against, {.label = against->run.name, .colour = faded(palette().quiet, 0.7f), .weight = 1}});
  lines.push_back(
      {&shown,
       {.label = shown.run.name + "##own", .colour = rung_colour(workspace.colour_of(shown.run)), .weight = 1.6f}});
  draw_metric_charts(found, list, {.lines = lines}, folded, shared, workspace, commands);
}

}  // namespace stepladder
