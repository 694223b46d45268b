// The Live view's metrics: a chart of each number that the run logs beside its steps' fields, or of those that the user
// chose. UI thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/metrics/chart_groups.h"
#include "app/desktop/metrics/metric_charts.h"
#include "app/desktop/metrics/metric_list.h"
#include "app/desktop/workspace.h"

namespace stepladder {

// The metrics of a run that are shown: all, or those that the user chose by name or pattern. Also for later runs. Pure.
class ChosenMetrics {
 public:
  bool all() const { return all_; }
  void show_all() { *this = {}; }

  // The first choice replaces all; later ones are added, and a single metric that is shown is removed again.
  void choose(const MetricChoice& choice, const MetricList& list);
  std::vector<Quantity> of(const MetricList& list) const;
  bool has(Quantity metric) const;  // false while all are shown

 private:
  friend nlohmann::json to_json(const ChosenMetrics& chosen);
  friend ChosenMetrics chosen_from(const nlohmann::json& read);

  bool all_ = true;
  std::set<std::string> names_;
  std::set<std::string> meant_by_;  // as is_meant reads them
};

nlohmann::json to_json(const ChosenMetrics& chosen);
ChosenMetrics chosen_from(const nlohmann::json& read);  // ignores what isn't understood

struct LiveMetrics {
  MetricList list;
  ChosenMetrics chosen;
  FoldedGroups folded;

  // The section's heading and charts, below the cursor. `grid.lines` has the run last.
  void draw(const MetricGrid& grid, SharedX& shared, const Workspace& workspace, Commands& commands);

 private:
  void draw_head(std::size_t shown);
};

}  // namespace stepladder
