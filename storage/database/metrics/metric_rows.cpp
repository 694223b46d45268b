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
  Statement step(database, "SELECT at_ms FROM steps WHERE run_id = ? AND step = ?", run, point.step);
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
  Statement row(database, "SELECT value FROM metric_values WHERE metric_id = ? AND step = ?", metric, point.step);
  return row.step() && (row.is_null(0) ? std::isnan(point.value) : row.real(0) == point.value);
}

void replace_point(Database& database, RunId run, MetricId metric, const MetricPoint& point) {
  if (is_newest(database, metric, point)) return;
  database.run(
      "INSERT INTO superseded_metric_values (metric_id, step, attempt, value, at_ms) SELECT metric_id, "
      "step, (SELECT coalesce(max(attempt), 0) + 1 FROM superseded_metric_values WHERE metric_id = ?1 AND "
      "step = ?2), value, at_ms FROM metric_values WHERE metric_id = ?1 AND step = ?2",
      metric, point.step);
  database.insert("OR REPLACE INTO metric_values", "metric_id, step, value, at_ms", metric, point.step, point.value,
                  stored_time(database, run, point));
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
  return read_all(Statement(database,
                            "SELECT " + std::string(metric_columns) + " FROM metrics WHERE run_id = ?1 AND " + names +
                                " ORDER BY name LIMIT ?3",
                            run, after, static_cast<std::int64_t>(most)),
                  read_row);
}

}  // namespace

MetricId put_metric(Database& database, RunId run, const Metric& metric) {
  const std::string name = bounded(metric.name, longest_name);
  const auto id = [&]() -> std::optional<MetricId> {
    return database.find("SELECT id FROM metrics WHERE run_id = ? AND name = ?", run, name);
  };
  const bool knows_more = !metric.unit.empty() || metric.direction != Direction::unknown || !metric.section.empty() ||
                          !metric.field.empty();
  std::optional<MetricId> found = id();
  if (found && !knows_more) return *found;
  const std::string direction(to_string(metric.direction));
  database.run(
      "INSERT INTO metrics (run_id, name, unit, direction, section, field) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
      "ON CONFLICT (run_id, name) DO UPDATE SET unit = coalesce(?3, unit), direction = coalesce(?4, "
      "direction), section = coalesce(?5, section), field = coalesce(?6, field)",
      run, name, known(bounded(metric.unit, longest_name)), known(direction),
      known(bounded(metric.section, longest_name)), known(metric.field));
  return found ? *found : *id();
}

void insert_points(Database& database, RunId run, MetricId metric, std::span<const MetricPoint> points) {
  if (points.empty()) return;
  Transaction whole(database);
  const auto last = database.find("SELECT max(step) FROM metric_values WHERE metric_id = ?", metric);
  const bool is_new = !last || points.front().step > *last;
  const auto goes_back = [](const MetricPoint& a, const MetricPoint& b) { return a.step >= b.step; };
  if (is_new && std::ranges::adjacent_find(points, goes_back) == points.end())
    insert_new_points(database, run, metric, points);
  else
    for (const MetricPoint& point : points) replace_point(database, run, metric, point);
  // Figures are derived from the values, and computed again on demand. Without figures, overviews don't count.
  database.run("DELETE FROM metric_figures WHERE metric_id = ?", metric);
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
  Statement rows(database, "SELECT " + std::string(metric_columns) + " FROM metrics WHERE run_id = ? AND name = ?", run,
                 name);
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
                     "ORDER BY step LIMIT ?5",
                     metric, run, range.first, range.last, points_at_once);
      while (rows.step()) points.push_back({rows.integer(0), value_of(rows, 1), seconds(rows, 2)});
    }
    if (points.empty()) return;
    use(points);
    range.first = points.back().step + 1;
  } while (std::ssize(points) == points_at_once && range.first <= range.last);
}

}  // namespace stepladder
