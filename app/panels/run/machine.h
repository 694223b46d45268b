// The Run view's machine: clocks, power, temperature, load and memory while it ran. UI thread.
#pragma once

#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct MachineMetrics {
  struct Column {
    std::vector<double> steps;
    std::vector<double> values;
  };
  std::vector<Column> columns;  // one for each metric
  std::size_t made_of = 0;      // samples
};

void draw_run_machine(MachineMetrics& metrics, SharedX& shared, const RunDetail& detail, Commands& commands);

}  // namespace stepladder
