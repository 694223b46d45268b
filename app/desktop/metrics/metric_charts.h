// A grid of small charts, one for each metric of a run, in groups that fold. UI thread, inside a frame.
#pragma once

#include <span>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/metrics/chart_groups.h"
#include "app/desktop/metrics/metric_list.h"
#include "app/desktop/workspace.h"

namespace stepladder {

// A run in every chart of the grid: its curve's label, colour and weight.
struct MetricLine {
  const RunEntry* run = nullptr;
  Curve look;
};

struct MetricGrid {
  std::span<const MetricLine> lines;  // the run itself last, on top
  double x_until = missing;           // as Chart::x_until
  bool in_cards = false;              // each chart in a card of its own
};

// Reads only what is on the screen, also while it grows.
void draw_metric_charts(const std::vector<Quantity>& metrics, const MetricList& list, const MetricGrid& grid,
                        FoldedGroups& folded, SharedX& shared, const Workspace& workspace, Commands& commands);

}  // namespace stepladder
