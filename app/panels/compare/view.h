// The state that the parts of the Compare view share: its options, its zoom and cursors, and the resulting curves. UI
// thread.
#pragma once

#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/models/comparison.h"

namespace stepladder {

struct CompareView {
  ComparisonOptions options;
  bool log_x = false;
  bool log_y = false;
  RunId base = 0;  // the baseline's run; if it isn't compared, the first run is used
  SharedX x;

  ComparisonViewModel shown;
  std::vector<std::string> caption;  // of exported figures

  const std::vector<ComparedLine>& lines() const { return shown.curves.lines; }
  const ComparedLine& base_line() const { return lines()[shown.curves.base]; }
};

}  // namespace stepladder
