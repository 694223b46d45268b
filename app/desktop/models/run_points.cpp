#include "app/desktop/models/run_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/text/format.h"

namespace stepladder {
namespace {

// The zoomed overview, if all of it is loaded. Asks for it a little early, with as much again around it, so that
// panning seldom has to read.
std::shared_ptr<const OverviewCurve> zoomed_overview(const Workspace& workspace, RunId run, const OverviewCurve& whole,
                                                     const SharedX& zoom, DataRequests& requests) {
  const Quantity quantity = whole.overview.quantity;
  const double begin = whole.points.x.front();
  const double end = whole.points.x.back();
  const double low = std::max(zoom.low, begin);
  const double high = std::min(zoom.high, end);
  if (low >= high) return nullptr;
  const auto loaded = workspace.zoomed_overview(run, quantity);
  const double width = zoom.high - zoom.low;
  const auto covers = [&](double margin) {
    return loaded && static_cast<double>(loaded->first) <= std::max(low - margin, begin) &&
           static_cast<double>(loaded->last) >= std::min(high + margin, end);
  };
  const bool fine =
      loaded && (loaded->overview.exact() || static_cast<double>(loaded->last - loaded->first) <= 3 * width + 4);
  const bool is_outdated = loaded && workspace.is_outdated(run, quantity, Workspace::Extent::zoomed);
  if (!covers(width / 8) || !fine || is_outdated) {
    const auto first = static_cast<std::int64_t>(std::floor(std::max(low - width / 2, begin)));
    const auto last = static_cast<std::int64_t>(std::ceil(std::min(high + width / 2, end)));
    requests.curves.push_back({run, quantity, std::pair(first, last)});
  }
  return covers(0) ? loaded : nullptr;
}

}  // namespace

SharedX steps_in_sight(const SharedX& zoom, const Points& places) {
  if (places.empty()) return {.low = zoom.low, .high = zoom.high};
  return {.low = step_at(places, zoom.low), .high = step_at(places, zoom.high)};
}

namespace {

RunPoints points_of(const Workspace& workspace, const RunEntry& entry, Quantity quantity, const SharedX* zoom,
                    DataRequests& requests, Reads reads) {
  const bool is_active = entry.run.status == RunStatus::running;
  const auto steps = [&] {
    return RunPoints{entry.steps, entry.values(quantity), &entry.levels(quantity), 0, nullptr, missing};
  };
  if (is_field(quantity) && (reads == Reads::overview ? is_active : entry.loaded)) return steps();
  if (is_field(quantity) && reads == Reads::steps && !entry.is_long()) {
    requests.series.push_back(entry.run.id);
    return {};
  }
  auto shown = workspace.overview(entry.run.id, quantity);
  if (!shown || workspace.is_outdated(entry.run.id, quantity, Workspace::Extent::whole))
    requests.curves.push_back({entry.run.id, quantity});
  if (!shown) return is_field(quantity) && entry.loaded ? steps() : RunPoints();  // until it is read
  if (zoom && zoom->zoomed() && !shown->overview.exact() && !shown->points.empty()) {
    if (auto zoomed = zoomed_overview(workspace, entry.run.id, *shown, *zoom, requests)) shown = std::move(zoomed);
  }
  const Points& points = shown->means.mean.empty() ? shown->points : shown->means.mean;
  return {points.x, points.y, &shown->levels, shown->behind(), shown, missing};
}

}  // namespace

double steady_from(const RunEntry& entry) {
  const bool is_active = entry.is_active();
  const std::int64_t warm =
      is_active ? warmup_steps(std::ssize(entry.steps), entry.run.warmup_steps) : entry.summary.warmup_steps;
  if (warm <= 0) return missing;
  if (static_cast<std::size_t>(warm) < entry.steps.size()) return entry.steps[static_cast<std::size_t>(warm)];
  const Summary& summary = entry.summary;
  const bool has_all_steps = summary.last_step - summary.first_step + 1 == summary.steps;
  return !is_active && entry.is_long() && has_all_steps ? static_cast<double>(summary.first_step + warm) : missing;
}

RunPoints run_points(const Workspace& workspace, const RunEntry& entry, Quantity quantity, const SharedX* zoom,
                     DataRequests& requests, Reads reads) {
  RunPoints points = points_of(workspace, entry, quantity, zoom, requests, reads);
  if (is_field(quantity)) points.steady_from = stepladder::steady_from(entry);
  return points;
}

void RunPoints::draw_as(Curve& curve) const {
  curve.x = x;
  curve.y = y;
  curve.steady_from = steady_from;
  if (overview) curve.not_finite = static_cast<std::size_t>(overview->not_finite);
  if (overview && !overview->means.mean.empty()) {
    curve.low = overview->means.low;
    curve.high = overview->means.high;
  } else {
    curve.levels = levels;
  }
}

std::string behind_text(std::int64_t behind) {
  return behind > 0 ? "means and range of " + grouped(behind) + " values" : "";
}

}  // namespace stepladder
