// The curves of the selected runs in one chart, and the buttons that act on all of them, beneath the History view's
// table. UI thread.
#pragma once

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/metrics/metric_list.h"
#include "app/panels/history/curation.h"

namespace stepladder {

struct HistoryOverlay {
  std::size_t metric = 0;  // of history_metrics
  SharedX x;
  MetricList logged;  // by the selected runs
};

inline constexpr std::size_t history_metrics = 3;  // loss, throughput, step time

void draw_history_overlay(HistoryOverlay& overlay, const HistoryRows& list, TagPopup& tags, const Workspace& workspace,
                          Commands& commands);

}  // namespace stepladder
