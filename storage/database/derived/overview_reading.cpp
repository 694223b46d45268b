#include "storage/database/derived/overview_reading.h"

#include <algorithm>
#include <utility>

namespace stepladder {
namespace {

std::int64_t values_between(const Overview& overview, StepRange range) {
  double sum = 0;
  for (const Bucket& bucket : overview.buckets) {
    const std::int64_t first = std::max(bucket.first_step, range.first);
    const std::int64_t last = std::min(bucket.last_step, range.last);
    if (first > last) continue;
    const auto steps = [](std::int64_t from, std::int64_t to) {
      return static_cast<double>(to) - static_cast<double>(from) + 1;
    };
    const double share = steps(first, last) / steps(bucket.first_step, bucket.last_step);
    sum += share * (static_cast<double>(bucket.count) + bucket.not_finite);
  }
  return static_cast<std::int64_t>(sum);
}

// Removes buckets that are wholly outside.
void cut(Overview& overview, StepRange range) {
  std::erase_if(overview.buckets,
                [&](const Bucket& bucket) { return bucket.last_step < range.first || bucket.first_step > range.last; });
}

// Values that are merged as they are read, so that twice as many as asked for at most are in memory.
Overview merged_values(const OverviewSource& source, StepRange range, std::size_t columns) {
  const std::size_t most = 16 * columns;
  Overview points;
  Bucket open;
  std::int64_t parts = 0;
  source.values(range, [&](std::int64_t step, double value) {
    if (is_missing(value)) return;
    if (parts++ == 0)
      open = bucket_of(step, value);
    else
      merge(open, bucket_of(step, value));
    if (parts < points.width) return;
    parts = 0;
    points.buckets.push_back(open);
    if (points.buckets.size() == 2 * most) points = coarser(std::move(points), most);
  });
  if (parts > 0) points.buckets.push_back(open);
  return points;
}

}  // namespace

std::optional<Overview> overview_of_chunks(Statement& rows, StepRange range) {
  Overview overview;
  while (rows.step() && rows.integer(1) <= range.last) {
    overview.width = width_of_level(static_cast<int>(rows.integer(0)));
    auto buckets = buckets_from(rows.blob(2));
    if (!buckets) return std::nullopt;
    overview.buckets.insert(overview.buckets.end(), buckets->begin(), buckets->end());
  }
  cut(overview, range);
  return overview;
}

Overview read_overview(const OverviewSource& source) {
  if (source.chunks) {
    if (auto kept = source.chunks(-1, {})) return *std::move(kept);
  }
  OverviewBuilder builder;
  source.values({}, [&](std::int64_t step, double value) { builder.add(step, value); });
  return builder.top(Quantity::loss);  // the caller knows which quantity it is
}

Overview read_overview(const OverviewSource& source, StepRange range, std::size_t columns) {
  columns = std::max<std::size_t>(columns, 1);
  if (source.chunks) {
    Overview top = read_overview(source);
    int level = level_for(values_between(top, range), columns);
    // Few values may be far apart (validation), so that reading them from the steps would read all steps between.
    const std::int64_t first = std::max(range.first, top.buckets.empty() ? 0 : top.buckets.front().first_step);
    const std::int64_t last = std::min(range.last, top.buckets.empty() ? -1 : top.buckets.back().last_step);
    if (last - first >= static_cast<std::int64_t>(16 * columns)) level = std::max(level, 1);
    if (width_of_level(level) >= top.width) {
      cut(top, range);
      return top;
    }
    if (level > 0) {
      if (auto kept = source.chunks(level, range)) return *std::move(kept);
    }
  }
  return merged_values(source, range, columns);  // few by now, if there are chunks
}

}  // namespace stepladder
