// The Run view's metrics: a small chart of each number that the run logged beside its steps' fields, also while it
// grows, with the run that it is compared with. UI thread.
#pragma once

#include <array>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/metrics/chart_groups.h"
#include "app/desktop/metrics/metric_list.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct RunMetrics {
  MetricList list;
  FoldedGroups folded;
  std::array<char, 128> search{};  // part of a name, or a pattern (is_meant)

  // `against` may be null. Reads the metrics that are on the screen.
  void draw(SharedX& shared, const Workspace& workspace, const RunEntry& shown, const RunEntry* against,
            Commands& commands);
};

}  // namespace stepladder
