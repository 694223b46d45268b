// The list from which the user chooses History's columns: values of runs and recipes, and figures of metrics, found by
// name or pattern. UI thread.
#pragma once

#include <array>

#include "app/desktop/fields.h"
#include "app/panels/history/columns.h"

namespace stepladder {

struct ColumnList {
  std::array<char, 128> search{};  // part of a name, or a pattern (is_meant)
  MetricColumn metric;             // which figure a metric is added with; its name is ignored
  NumberField step;

  void draw(HistoryColumns& columns, const Workspace& workspace);  // the popup "##columns"

 private:
  void draw_figures();
  void draw_metrics(HistoryColumns& columns, const Workspace& workspace, bool entered);
};

}  // namespace stepladder
