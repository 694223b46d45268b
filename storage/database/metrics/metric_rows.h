// Rows of `metrics` and `metric_values`, written and read. Inside storage/ only.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "storage/database/database.h"
#include "storage/database/step_rows.h"
#include "storage/records.h"

namespace stepladder {

using MetricId = std::int64_t;

// Creates the metric if the run has none of this name. What `metric` knows replaces what the file has; what it doesn't
// know stays.
MetricId put_metric(Database& database, RunId run, const Metric& metric);

// Appends points in any order; a step that is there already with another value moves to superseded_metric_values, and
// the newer one counts. The steps of the same numbers should be stored before, since a point at the time of its step
// takes less room.
void insert_points(Database& database, RunId run, MetricId metric, std::span<const MetricPoint> points);

// Consecutive events of one run.
void insert_metric_values(Database& database, std::span<const MetricValues> events);

struct MetricRow {
  MetricId id = 0;
  Metric metric;
};
std::vector<MetricRow> read_metrics(Database& database, RunId run, std::size_t most);  // by name, the first `most`
// The same, one by one, some thousands read at a time; no read lock is held while `use` runs.
void for_metrics(Database& database, RunId run, std::size_t most, const std::function<void(const MetricRow&)>& use);
std::optional<MetricRow> read_metric(Database& database, RunId run, std::string_view name);

// A metric's own values within these steps, in order, some thousands at a time; no read lock is held while `use` runs.
using UsePoints = std::function<void(std::span<const MetricPoint>)>;
void read_points(Database& database, RunId run, MetricId metric, StepRange range, const UsePoints& use);

}  // namespace stepladder
