#include "app/desktop/models/run_points.h"

#include <algorithm>
#include <cmath>

#include "app/format.h"

namespace stepladder {
namespace {

// What was zoomed to, where it is there in full; asked for a little before it is needed, and for as much again around
// it, so that panning reads once in a while.
const Glance* sight_of(const Workspace& workspace, RunId run, Quantity quantity, const Glance& glance,
                       const SharedX& zoom, Commands& commands) {
  const double begin = glance.x.front();
  const double end = glance.x.back();
  const double low = std::max(zoom.low, begin);
  const double high = std::min(zoom.high, end);
  if (low >= high) return nullptr;
  const Glance* sight = workspace.sight(run, quantity);
  const double width = zoom.high - zoom.low;
  const auto covers = [&](double margin) {
    return sight && static_cast<double>(sight->first) <= std::max(low - margin, begin) &&
           static_cast<double>(sight->last) >= std::min(high + margin, end);
  };
  const bool fine = sight && (sight->exact || static_cast<double>(sight->last - sight->first) <= 3 * width + 4);
  if (!covers(width / 8) || !fine) {
    const auto first = static_cast<std::int64_t>(std::floor(std::max(low - width / 2, begin)));
    const auto last = static_cast<std::int64_t>(std::ceil(std::min(high + width / 2, end)));
    commands.push_back(LoadSight{run, quantity, first, last});
  }
  return covers(0) ? sight : nullptr;
}

}  // namespace

RunPoints run_points(const Workspace& workspace, const RunEntry& entry, Quantity quantity, const SharedX* zoom,
                     Commands& commands, Reads reads) {
  const bool goes_on = entry.run.status == RunStatus::running;
  if (entry.loaded || (goes_on && reads == Reads::glance))
    return {entry.steps, entry.values(quantity), &entry.levels(quantity), 0, {}};
  if (reads == Reads::steps && !entry.is_long()) {
    commands.push_back(LoadSeries{entry.run.id});
    return {};
  }
  const Glance* shown = workspace.glance(entry.run.id, quantity);
  if (!shown) {
    commands.push_back(LoadGlance{entry.run.id, quantity});
    return {};
  }
  if (zoom && zoom->zoomed() && !shown->exact && !shown->x.empty()) {
    if (const Glance* sight = sight_of(workspace, entry.run.id, quantity, *shown, *zoom, commands)) shown = sight;
  }
  return {shown->x, shown->y, &shown->levels, shown->exact ? 0 : shown->values, shown->mean};
}

std::string behind_text(std::int64_t behind) {
  return behind > 0 ? "lowest and highest of " + grouped(behind) + " values" : "";
}

}  // namespace stepladder
