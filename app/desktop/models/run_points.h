// What a chart shows of a run's quantity: its steps where they are in memory, else of a long run its overview, and more
// finely what was zoomed to. What isn't loaded yet is asked for, and arrives in one of the next frames.
#pragma once

#include <memory>
#include <span>

#include "app/desktop/charts/charts.h"
#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct RunPoints {
  std::span<const double> x;
  std::span<const double> y;
  const MinMaxPyramid* levels = nullptr;          // of them; null: nothing is loaded yet
  std::int64_t behind = 0;                        // values that are shown by the lowest and highest of their neighbours
  std::shared_ptr<const OverviewCurve> overview;  // that the points are of; null where the steps are in memory
};

// Where steps are not in memory: `steps` reads those of short runs, `overview` none (for charts of many runs).
enum class Reads { steps, overview };

// `zoom` null: the overview of the whole run is enough.
RunPoints run_points(const Workspace& workspace, const RunEntry& entry, Quantity quantity, const SharedX* zoom,
                     Commands& commands, Reads reads = Reads::steps);

// "lowest and highest of 10,000,000 values", or nothing where every value is drawn itself.
std::string behind_text(std::int64_t behind);

}  // namespace stepladder
