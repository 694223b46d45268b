// The points of a run's quantity for a chart: its steps if they are in memory, otherwise an overview of a long run or
// of a metric, in finer resolution where the user zoomed in. Asks for data that isn't loaded, which arrives in one of
// the next frames.
#pragma once

#include <memory>
#include <span>

#include "app/curves/curves.h"
#include "app/desktop/charts/charts.h"
#include "app/desktop/data_requests.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct RunPoints {
  std::span<const double> x;
  std::span<const double> y;
  const MinMaxPyramid* levels = nullptr;          // of y, or of the points behind it; null: nothing is loaded yet
  std::int64_t behind = 0;                        // values that are shown as means, lowest and highest of neighbours
  std::shared_ptr<const OverviewCurve> overview;  // the source of the points; null if the steps are in memory
  double steady_from = missing;                   // of a field: x of the first step after the warm-up

  // Gives a curve these points, with the range behind them as a band.
  void draw_as(Curve& curve) const;
};

// The first step after the run's warm-up; while it trains, after the least that a warm-up takes. Missing if none is
// known.
double steady_from(const RunEntry& entry);

// `steps` reads those of runs that aren't long. `overview` reads none (for charts of many runs) and shows those of a
// running run only: a chart must not depend on which steps another view has read.
enum class Reads { steps, overview };

// `zoom` null: the overview of the whole run is enough.
RunPoints run_points(const Workspace& workspace, const RunEntry& entry, Quantity quantity, const SharedX* zoom,
                     DataRequests& requests, Reads reads = Reads::steps);

// The zoomed steps of a long run. Without places x is the step.
SharedX steps_in_sight(const SharedX& zoom, const Points& places);

// "means and range of 10,000,000 values", or empty if every value is drawn.
std::string behind_text(std::int64_t behind);

}  // namespace stepladder
