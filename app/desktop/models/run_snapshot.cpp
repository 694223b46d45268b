#include "app/desktop/models/run_snapshot.h"

#include <cmath>

#include "storage/record_fields.h"

namespace stepladder {
namespace {

// `copy` holds the first of `source`'s rows.
void grow(Series& copy, const Series& source) {
  for_each_field(series_columns, [&](const auto& column) {
    auto& to = copy.*column.values;
    const auto& from = source.*column.values;
    to.insert(to.end(), from.begin() + std::ssize(to), from.end());
  });
}

}  // namespace

Summary RunSnapshot::summary() const {
  return is_active ? summarise(run, *series) : known;
}

const OverviewCurve* RunSnapshot::overview(Quantity quantity) const {
  for (const auto& loaded : overviews)
    if (loaded->overview.quantity == quantity) return loaded.get();
  return nullptr;
}

Points RunSnapshot::places(Axis axis) const {
  if (axis == Axis::step) return {};
  if (!is_excerpt) return places_of(run, *series, axis);
  return places_of(run, *series, step_times ? totals_of(step_times->overview) : Points{}, axis);
}

std::int64_t fingerprint(const RunEntry& entry) {
  const std::int64_t steps = entry.loaded ? std::ssize(entry.series().step) + 1 : entry.excerpt ? 1 : 0;
  return (steps << 16) + entry.rewritten;
}

void SnapshotCache::expect(std::size_t runs, bool excerpts_only) {
  owner_.check();
  excerpts_only_ = excerpts_only;
  most_steps_ = most_steps_of_each(runs);
}

bool SnapshotCache::is_coarse(const RunEntry& entry) const {
  owner_.check();
  return !entry.is_active() && (excerpts_only_ || entry.summary.steps > most_steps_);
}

RunSnapshot SnapshotCache::of(const RunEntry& entry) {
  owner_.check();
  RunSnapshot snapshot{
      .run = entry.run, .known = entry.summary, .is_active = entry.is_active(), .is_excerpt = is_coarse(entry)};
  if (snapshot.is_active) {
    Copy& copy = live_[entry.run.id];
    if (!copy.series || copy.rewritten != entry.rewritten) copy = {std::make_shared<Series>(), entry.rewritten};
    grow(*copy.series, entry.series());
    snapshot.series = copy.series;
  } else {
    live_.erase(entry.run.id);
    snapshot.series = snapshot.is_excerpt ? entry.excerpt : entry.shared_series();
    if (!snapshot.series) snapshot.series = std::make_shared<Series>();
  }
  return snapshot;
}

void SnapshotCache::ask(const RunEntry& entry, DataRequests& requests) const {
  owner_.check();
  if (!is_coarse(entry)) {
    if (!entry.loaded) requests.series.push_back(entry.run.id);
  } else if (!entry.excerpt) {
    requests.excerpts.push_back({entry.run.id, excerpt_of(most_steps_)});
  }
}

std::int64_t fingerprint(const RunPoints& points) {
  if (points.x.empty()) return points.levels != nullptr;
  return std::llround(points.x.front()) * 31 + std::llround(points.x.back()) * 17 + std::ssize(points.x);
}

}  // namespace stepladder
