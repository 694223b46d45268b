// SQL for `metrics` and `metric_values`. New, ascending points take the fast path of multi-row inserts; all others are
// inserted one by one and keep the older value as superseded. Each insert drops the metric's cached figures.
#include "storage/database/metrics/metric_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"

namespace stepladder {
namespace {

constexpr std::int64_t points_at_once = 16'384;
constexpr std::size_t metrics_at_once = 2000;
constexpr double same_moment_s = 0.01;  // a point this near to its step's end has the step's time

std::optional<std::int64_t> milliseconds(double at) {
  constexpr double highest = 9e15;
  if (!(std::abs(at) * 1e3 < highest)) return std::nullopt;
  return std::llround(at * 1e3);
}

double seconds(const Statement& row, int column) {
  return row.is_null(column) ? missing : static_cast<double>(row.integer(column)) / 1e3;
}

// The point's time; NULL if it is that of the run's step of that number, or not known.
std::optional<std::int64_t> stored_time(Database& database, RunId run, const MetricPoint& point) {
  if (is_missing(point.at)) return std::nullopt;
  Statement step(database, "SELECT at_ms FROM steps WHERE run_id = ? AND step = ?");
  step.bind(run).bind(point.step);
  if (step.step() && std::abs(seconds(step, 0) - point.at) <= same_moment_s) return std::nullopt;
  return milliseconds(point.at);
}

double value_of(const Statement& row, int column) {  // a point has a value, so NULL can only be a NaN
  return row.is_null(column) ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

void insert_new_points(Database& database, RunId run, MetricId metric, std::span<const MetricPoint> points) {
  constexpr std::size_t at_once = 32;
  const auto sql = [](std::size_t rows) {
    std::string text = "INSERT INTO metric_values (metric_id, step, value, at_ms) VALUES ";
    for (std::size_t i = 0; i < rows; ++i) text += i == 0 ? "(?,?,?,?)" : ",(?,?,?,?)";
    return text;
  };
  static const std::string full = sql(at_once);
  while (!points.empty()) {
    const std::size_t rows = std::min(at_once, points.size());
    Statement insert(database, rows == at_once ? full : sql(rows));
    for (const MetricPoint& point : points.first(rows))
      insert.bind(metric).bind(point.step).bind(point.value).bind(stored_time(database, run, point));
    insert.run();
    points = points.subspan(rows);
  }
}

bool is_newest(Database& database, MetricId metric, const MetricPoint& point) {
  Statement row(database, "SELECT value FROM metric_values WHERE metric_id = ? AND step = ?");
  row.bind(metric).bind(point.step);
  return row.step() && (row.is_null(0) ? std::isnan(point.value) : row.real(0) == point.value);
}

void replace_point(Database& database, RunId run, MetricId metric, const MetricPoint& point) {
  if (is_newest(database, metric, point)) return;
  Statement keep(database,
                 "INSERT INTO superseded_metric_values (metric_id, step, attempt, value, at_ms) SELECT metric_id, "
                 "step, (SELECT coalesce(max(attempt), 0) + 1 FROM superseded_metric_values WHERE metric_id = ?1 AND "
                 "step = ?2), value, at_ms FROM metric_values WHERE metric_id = ?1 AND step = ?2");
  keep.bind(metric).bind(point.step).run();
  Statement insert(database, "INSERT OR REPLACE INTO metric_values (metric_id, step, value, at_ms) VALUES (?,?,?,?)");
  insert.bind(metric).bind(point.step).bind(point.value).bind(stored_time(database, run, point)).run();
}

constexpr std::string_view metric_columns = "id, name, unit, direction, section, field";

MetricRow read_row(const Statement& row) {
  MetricRow read{.id = row.integer(0),
                 .metric = {.name = bounded(row.text(1), longest_name),
                            .unit = bounded(row.text(2), longest_name),
                            .section = bounded(row.text(4), longest_name),
                            .field = bounded(row.text(5), longest_name)}};
  for (const Direction direction : {Direction::lower, Direction::higher})
    if (row.text(3) == to_string(direction)) read.metric.direction = direction;
  return read;
}

// The first `most` metrics by name after this one; null: from the first. An id, not a name, since a stranger's file may
// have longer names than are read.
std::vector<MetricRow> metrics_after(Database& database, RunId run, std::optional<MetricId> after, std::size_t most) {
  const std::string names = after ? "name > (SELECT name FROM metrics WHERE id = ?2)" : "?2 IS NULL";
  Statement rows(database, "SELECT " + std::string(metric_columns) + " FROM metrics WHERE run_id = ?1 AND " + names +
                               " ORDER BY name LIMIT ?3");
  rows.bind(run).bind(after).bind(static_cast<std::int64_t>(most));
  std::vector<MetricRow> metrics;
  while (rows.step()) metrics.push_back(read_row(rows));
  return metrics;
}

}  // namespace

MetricId put_metric(Database& database, RunId run, const Metric& metric) {
  const std::string name = bounded(metric.name, longest_name);
  const auto id = [&]() -> std::optional<MetricId> {
    Statement row(database, "SELECT id FROM metrics WHERE run_id = ? AND name = ?");
    row.bind(run).bind(name);
    return row.step() ? std::optional(row.integer(0)) : std::nullopt;
  };
  const bool knows_more = !metric.unit.empty() || metric.direction != Direction::unknown || !metric.section.empty() ||
                          !metric.field.empty();
  std::optional<MetricId> found = id();
  if (found && !knows_more) return *found;
  const std::string direction(to_string(metric.direction));
  Statement put(database,
                "INSERT INTO metrics (run_id, name, unit, direction, section, field) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
                "ON CONFLICT (run_id, name) DO UPDATE SET unit = coalesce(?3, unit), direction = coalesce(?4, "
                "direction), section = coalesce(?5, section), field = coalesce(?6, field)");
  put.bind(run).bind(name).bind(known(bounded(metric.unit, longest_name))).bind(known(direction));
  put.bind(known(bounded(metric.section, longest_name))).bind(known(metric.field)).run();
  return found ? *found : *id();
}

void insert_points(Database& database, RunId run, MetricId metric, std::span<const MetricPoint> points) {
  if (points.empty()) return;
  Transaction whole(database);
  bool is_new = false;
  {
    Statement last(database, "SELECT max(step) FROM metric_values WHERE metric_id = ?");
    last.bind(metric);
    is_new = !last.step() || last.is_null(0) || points.front().step > last.integer(0);
  }
  const auto goes_back = [](const MetricPoint& a, const MetricPoint& b) { return a.step >= b.step; };
  if (is_new && std::adjacent_find(points.begin(), points.end(), goes_back) == points.end())
    insert_new_points(database, run, metric, points);
  else
    for (const MetricPoint& point : points) replace_point(database, run, metric, point);
  // Figures are derived from the values, and computed again on demand. Without figures, overviews don't count.
  Statement(database, "DELETE FROM metric_figures WHERE metric_id = ?").bind(metric).run();
  whole.commit();
}

void insert_metric_values(Database& database, std::span<const MetricValues> events) {
  std::map<std::string, std::vector<MetricPoint>> points;
  for (const MetricValues& event : events)
    for (const auto& [name, value] : event.values) points[name].push_back({event.step, value, event.at});
  for (const auto& [name, of_metric] : points) {
    const RunId run = events.front().run;
    insert_points(database, run, put_metric(database, run, {.name = name}), of_metric);
  }
}

std::vector<MetricRow> read_metrics(Database& database, RunId run, std::size_t most) {
  return metrics_after(database, run, {}, most);
}

void for_metrics(Database& database, RunId run, std::size_t most, const std::function<void(const MetricRow&)>& use) {
  std::optional<MetricId> after;
  while (most > 0) {
    const std::vector<MetricRow> rows = metrics_after(database, run, after, std::min(most, metrics_at_once));
    if (rows.empty()) return;
    for (const MetricRow& row : rows) use(row);
    most -= rows.size();
    after = rows.back().id;
  }
}

std::optional<MetricRow> read_metric(Database& database, RunId run, std::string_view name) {
  Statement rows(database, "SELECT " + std::string(metric_columns) + " FROM metrics WHERE run_id = ? AND name = ?");
  rows.bind(run).bind(name);
  return rows.step() ? std::optional(read_row(rows)) : std::nullopt;
}

void read_points(Database& database, RunId run, MetricId metric, StepRange range, const UsePoints& use) {
  std::vector<MetricPoint> points;
  range = range.readable();
  do {
    points.clear();
    {
      Statement rows(database,
                     "SELECT step, value, coalesce(at_ms, (SELECT at_ms FROM steps WHERE run_id = ?2 AND steps.step = "
                     "metric_values.step)) FROM metric_values WHERE metric_id = ?1 AND step BETWEEN ?3 AND ?4 "
                     "ORDER BY step LIMIT ?5");
      rows.bind(metric).bind(run).bind(range.first).bind(range.last).bind(points_at_once);
      while (rows.step()) points.push_back({rows.integer(0), value_of(rows, 1), seconds(rows, 2)});
    }
    if (points.empty()) return;
    use(points);
    range.first = points.back().step + 1;
  } while (std::ssize(points) == points_at_once && range.first <= range.last);
}

}  // namespace stepladder
