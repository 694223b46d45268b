#include "storage/database/metrics/metric_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "storage/analysis/metrics/metric_verdict.h"
#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/derived/overview_reading.h"
#include "storage/database/metrics/metric_rows.h"
#include "storage/database/run_rows.h"

namespace stepladder {
namespace {

constexpr int figures_format = 1;  // of metric_figures and metric_overviews; others are made again
constexpr auto fewest_for_chunks = static_cast<std::int64_t>(most_in_chunk) + 1;  // values

struct Chunk {
  int level;
  std::int64_t first_step;
  std::int64_t last_step;
  std::string bytes;
};

void keep_chunks(Database& database, MetricId metric, std::span<const Chunk> chunks) {
  Statement(database, "DELETE FROM metric_overviews WHERE metric_id = ?").bind(metric).run();
  for (const Chunk& chunk : chunks) {
    Statement insert(database,
                     "INSERT INTO metric_overviews (metric_id, level, first_step, last_step, buckets) VALUES "
                     "(?, ?, ?, ?, ?)");
    insert.bind(metric).bind(chunk.level).bind(chunk.first_step).bind(chunk.last_step).bind_blob(chunk.bytes).run();
  }
}

void keep_figures(Database& database, MetricId metric, const MetricFigures& figures) {
  Statement insert(
      database,
      "INSERT OR REPLACE INTO metric_figures (metric_id, format, count, not_finite, first_step, "
      "last_step, first, last, lowest, highest, mean, median) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(metric).bind(figures_format).bind(figures.count).bind(figures.not_finite);
  insert.bind(figures.first_step).bind(figures.last_step).bind(figures.first).bind(figures.last);
  insert.bind(figures.lowest).bind(figures.highest).bind(figures.mean).bind(figures.median).run();
}

std::int64_t count_of_values(Database& database, MetricId metric) {
  Statement row(database, "SELECT count(*) FROM metric_values WHERE metric_id = ?");
  return row.bind(metric).step() ? row.integer(0) : 0;
}

bool is_run_over(Database& database, RunId run) {
  Statement row(database, "SELECT 1 FROM runs WHERE id = ? AND status NOT IN ('queued', 'running')");
  return row.bind(run).step();
}

std::optional<Quantity> quantity_of(const Metric& metric) {
  for (const Quantity quantity : step_quantities)
    if (metric.field == to_string(quantity)) return quantity;
  return std::nullopt;
}

Metric field_metric(std::string_view name) {
  Metric metric{.name = std::string(name), .field = std::string(name)};
  for (const Quantity field : step_quantities)
    if (name == to_string(field)) metric.direction = better_direction(field);
  if (name == "dt_ms") metric.unit = "ms";
  if (name == "tokens_per_s") metric.unit = "tokens/s";
  return metric;
}

}  // namespace

void MetricStore::describe(RunId run, const Metric& metric) {
  put_metric(database_, run, metric);
}

void MetricStore::append(RunId run, std::string_view name, std::span<const MetricPoint> points) {
  insert_points(database_, run, put_metric(database_, run, {.name = std::string(name)}), points);
}

void MetricStore::for_points(RunId run, const MetricRow& row, std::int64_t first_step, std::int64_t last_step,
                             const Use& use) {
  const std::optional<Quantity> quantity = quantity_of(row.metric);
  if (!quantity) {
    read_points(database_, run, row.id, {first_step, last_step}, use);
    return;
  }
  StepReader reader(database_, run, {first_step, last_step});
  std::vector<MetricPoint> points;
  for (std::vector<StepReader::Row> rows; reader.read(rows);) {
    points.clear();
    for (const StepReader::Row& step : rows)
      if (const double value = value_of(step.step, *quantity); !is_missing(value))
        points.push_back({step.step.step, value, step.step.at});
    if (!points.empty()) use(points);
  }
}

void MetricStore::for_points(RunId run, std::string_view name, const Use& use) {
  for_points(run, name, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), use);
}

void MetricStore::for_points(RunId run, std::string_view name, std::int64_t first_step, std::int64_t last_step,
                             const Use& use) {
  if (const auto row = row_of(run, name)) for_points(run, *row, first_step, last_step, use);
}

// Fields of the steps have no row of their own.
std::optional<MetricRow> MetricStore::row_of(RunId run, std::string_view name) {
  if (auto row = read_metric(database_, run, name)) return row;
  const MetricRow field{.metric = field_metric(name)};
  return quantity_of(field.metric) ? std::optional(field) : std::nullopt;
}

std::vector<MetricPoint> MetricStore::points(RunId run, std::string_view name) {
  std::vector<MetricPoint> all;
  for_points(run, name, [&](std::span<const MetricPoint> some) { all.insert(all.end(), some.begin(), some.end()); });
  return all;
}

std::optional<MetricFigures> MetricStore::kept_figures(MetricId metric) {
  Statement row(database_,
                "SELECT count, not_finite, first_step, last_step, first, last, lowest, highest, mean, median FROM "
                "metric_figures WHERE metric_id = ? AND format = ?");
  row.bind(metric).bind(figures_format);
  if (!row.step()) return std::nullopt;
  MetricFigures figures{.count = row.integer(0),
                        .not_finite = row.integer(1),
                        .first_step = row.integer(2),
                        .last_step = row.integer(3),
                        .first = row.real(4),
                        .last = row.real(5),
                        .lowest = row.real(6),
                        .highest = row.real(7),
                        .mean = row.real(8),
                        .median = row.real(9)};
  for (double* const value : {&figures.first, &figures.last})
    if (figures.count > 0 && is_missing(*value)) *value = std::numeric_limits<double>::quiet_NaN();
  return figures;
}

// Reads all values. Keeps figures and chunks if the run is over; a locked or full file does not prevent the answer.
MetricFigures MetricStore::make(RunId run, const MetricRow& row) {
  std::vector<Chunk> chunks;
  MetricFiguresBuilder figures;
  OverviewBuilder builder([&](int level, std::span<const Bucket> buckets) {
    if (!buckets.empty())
      chunks.push_back({level, buckets.front().first_step, buckets.back().last_step, to_bytes(buckets)});
  });
  for_points(run, row, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
             [&](std::span<const MetricPoint> points) {
               for (const MetricPoint& point : points) {
                 figures.add(point.step, point.value);
                 builder.add(point.step, point.value);
               }
             });
  builder.finish();
  const MetricFigures made = figures.finish();
  const bool is_field = quantity_of(row.metric).has_value();  // the run's own overviews have it
  if (is_field || database_.read_only() || !is_run_over(database_, run)) return made;
  if (made.count < fewest_for_chunks) chunks.clear();
  try {
    Transaction transaction(database_);
    // Only if nobody has resumed the run since, or appended to it.
    if (is_run_over(database_, run) && count_of_values(database_, row.id) == made.count) {
      keep_chunks(database_, row.id, chunks);
      keep_figures(database_, row.id, made);
    }
    transaction.commit();
  } catch (const StorageError&) {  // made again next time
  }
  return made;
}

MetricAndFigures MetricStore::with_figures(RunId run, const MetricRow& row, bool is_over) {
  const auto kept = is_over && !quantity_of(row.metric) ? kept_figures(row.id) : std::nullopt;
  return {row.metric, kept ? *kept : make(run, row)};
}

std::vector<Metric> MetricStore::names(RunId run) {
  std::vector<Metric> names;
  for (MetricRow& row : read_metrics(database_, run)) names.push_back(std::move(row.metric));
  return names;
}

std::vector<MetricAndFigures> MetricStore::of_run(RunId run) {
  const bool is_over = is_run_over(database_, run);
  std::vector<MetricAndFigures> metrics;
  for (const MetricRow& row : read_metrics(database_, run)) metrics.push_back(with_figures(run, row, is_over));
  return metrics;
}

std::vector<MetricAndFigures> MetricStore::all_of_run(RunId run) {
  std::vector<MetricAndFigures> logged = of_run(run);
  std::vector<MetricAndFigures> all;
  for (const Quantity quantity : step_quantities) {
    const std::string_view name = to_string(quantity);
    const auto stands_for = [&](const MetricAndFigures& each) {
      return each.metric.name == name || each.metric.field == name;
    };
    if (std::any_of(logged.begin(), logged.end(), stands_for)) continue;
    MetricAndFigures field{.metric = field_metric(name)};
    field.figures = make(run, {.metric = field.metric});
    if (field.figures.count > 0) all.push_back(std::move(field));
  }
  std::move(logged.begin(), logged.end(), std::back_inserter(all));
  return all;
}

std::optional<MetricAndFigures> MetricStore::find(RunId run, std::string_view name) {
  const auto row = row_of(run, name);
  if (!row) return std::nullopt;
  MetricAndFigures found = with_figures(run, *row, is_run_over(database_, run));
  return found.figures.count > 0 ? std::optional(std::move(found)) : std::nullopt;
}

OverviewSource MetricStore::source(RunId run, const MetricRow& row) {
  OverviewSource source;
  source.values = [this, run, row](StepRange range, const OverviewSource::Use& use) {
    for_points(run, row, range.first, range.last, [&](std::span<const MetricPoint> points) {
      for (const MetricPoint& point : points) use(point.step, point.value);
    });
  };
  if (!is_run_over(database_, run)) return source;
  std::optional<MetricFigures> figures = kept_figures(row.id);
  if (!figures) figures = make(run, row);
  if (figures->count < fewest_for_chunks) return source;
  source.chunks = [this, id = row.id](int level, StepRange range) -> std::optional<Overview> {
    Transaction one_state(database_, Transaction::Kind::read);
    if (!kept_figures(id)) return std::nullopt;
    Statement rows(database_,
                   "SELECT level, first_step, buckets FROM metric_overviews WHERE metric_id = ?1 AND level = CASE "
                   "WHEN ?2 >= 0 THEN ?2 ELSE (SELECT max(level) FROM metric_overviews WHERE metric_id = ?1) END AND "
                   "last_step >= ?3 ORDER BY last_step");
    rows.bind(id).bind(level).bind(range.first);
    auto overview = overview_of_chunks(rows, range);
    const bool has_none = overview && overview->buckets.empty();
    return has_none && level < 0 ? std::nullopt : std::move(overview);
  };
  return source;
}

Overview MetricStore::overview(RunId run, std::string_view name) {
  const auto row = row_of(run, name);
  if (!row) return {};
  if (const auto quantity = quantity_of(row->metric)) {
    const auto of = read_run(database_, run);
    return of ? derived_.overview(*of, *quantity) : Overview{};
  }
  return read_overview(source(run, *row));
}

Overview MetricStore::overview(RunId run, std::string_view name, std::int64_t first_step, std::int64_t last_step,
                               std::size_t columns) {
  const auto row = row_of(run, name);
  if (!row) return {};
  if (const auto quantity = quantity_of(row->metric)) {
    const auto of = read_run(database_, run);
    return of ? derived_.overview(*of, *quantity, {first_step, last_step}, columns) : Overview{};
  }
  return read_overview(source(run, *row), {first_step, last_step}, columns);
}

}  // namespace stepladder
