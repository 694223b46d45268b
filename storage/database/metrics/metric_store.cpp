// Answers questions about metrics, whether they are logged (rows of their own) or fields of the steps. Figures and
// overviews of runs that are over are cached under figures_format; raise it when they change. `table` must stay one
// query for each name, since lists ask for thousands of runs.
#include "storage/database/metrics/metric_store.h"

#include <iterator>
#include <set>

#include "storage/analysis/metric_comparison.h"
#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/metrics/metric_rows.h"
#include "storage/database/run_rows.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::int64_t figures_format = 1;  // of metric_figures and metric_overviews; others are made again
constexpr auto fewest_for_chunks = static_cast<std::int64_t>(most_in_chunk) + 1;  // values

struct Chunk {
  int level;
  std::int64_t first_step;
  std::int64_t last_step;
  std::string bytes;
};

void keep_chunks(Database& database, MetricId metric, std::span<const Chunk> chunks) {
  database.run("DELETE FROM metric_overviews WHERE metric_id = ?", metric);
  for (const Chunk& chunk : chunks) {
    database.insert("INTO metric_overviews", "metric_id, level, first_step, last_step, buckets", metric, chunk.level,
                    chunk.first_step, chunk.last_step, Blob{chunk.bytes});
  }
}

constexpr std::string_view figure_columns =
    "format, count, not_finite, first_step, last_step, first, last, lowest, highest, mean, median";
constexpr std::int64_t MetricFigures::*figure_counts[] = {&MetricFigures::count, &MetricFigures::not_finite,
                                                          &MetricFigures::first_step, &MetricFigures::last_step};
constexpr double MetricFigures::*figure_values[] = {&MetricFigures::first,  &MetricFigures::last,
                                                    &MetricFigures::lowest, &MetricFigures::highest,
                                                    &MetricFigures::mean,   &MetricFigures::median};

// What the seal in metric_figures.format is of.
SealedContent content_of(MetricId metric, const MetricFigures& figures) {
  SealedContent content("metric_figures");
  content.add(std::int64_t{metric}).add(figures_format);
  for (const auto count : figure_counts) content.add(figures.*count);
  for (const auto value : figure_values) content.add(figures.*value);
  return content;
}

void keep_figures(Database& database, FigureSeal& seal, MetricId metric, const MetricFigures& figures) {
  Statement insert(database,
                   fmt::format("INSERT OR REPLACE INTO metric_figures (metric_id, {}) VALUES (?, ?{})", figure_columns,
                               places_of(figure_columns)),
                   metric, seal.here(content_of(metric, figures)));
  for (const auto count : figure_counts) insert.bind(figures.*count);
  for (const auto value : figure_values) insert.bind(figures.*value);
  insert.run();
}

std::int64_t count_of_values(Database& database, MetricId metric) {
  return database.integer("SELECT count(*) FROM metric_values WHERE metric_id = ?", metric);
}

bool is_run_over(Database& database, RunId run) {
  return database.has("SELECT 1 FROM runs WHERE id = ? AND status NOT IN ('queued', 'running')", run);
}

std::optional<Quantity> quantity_of(const Metric& metric) {
  for (const Quantity quantity : step_quantities)
    if (metric.field == to_string(quantity)) return quantity;
  return std::nullopt;
}

// The figures in a row of metric_figures, from `column` on, the format first; nullopt without its seal.
std::optional<MetricFigures> figures_in(FigureSeal& seal, MetricId metric, const Statement& row, int column) {
  const std::int64_t format = row.integer(column++);
  MetricFigures figures;
  for (const auto count : figure_counts) figures.*count = count_of(row, column++);
  for (const auto value : figure_values) figures.*value = row.real(column++);
  for (double* const value : {&figures.first, &figures.last})
    if (figures.count > 0 && is_missing(*value)) *value = std::numeric_limits<double>::quiet_NaN();
  if (format != seal.here(content_of(metric, figures))) return std::nullopt;
  return figures;
}

Metric field_metric(std::string_view name) {
  Metric metric{.name = std::string(name), .field = std::string(name)};
  for (const Quantity field : step_quantities)
    if (name == to_string(field)) metric.direction = better_direction(field);
  if (name == "dt_ms") metric.unit = "ms";
  if (name == "tokens_per_s") metric.unit = "tokens/s";
  return metric;
}

bool is_visible(Database& database, RunId run) {
  return database.has("SELECT 1 FROM runs WHERE id = ? AND hidden = 0", run);
}

}  // namespace

double figure_of(const MetricFigures& figures, MetricFigure::Kind kind) {
  return by_enum<MetricFigure::Kind>(figures.last, figures.lowest, figures.highest, figures.median, missing)[kind];
}

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
  for_points(run, name, -largest_count, largest_count, use);
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
  Statement row(database_, fmt::format("SELECT {} FROM metric_figures WHERE metric_id = ?", figure_columns), metric);
  return row.step() ? figures_in(derived_.seal(), metric, row, 0) : std::nullopt;
}

struct MadeFigures {
  MetricRow row;
  MetricFigures figures;
  std::vector<Chunk> chunks;
};

// Reads all values. Keeps what is made if the run is over.
MetricFigures MetricStore::make(RunId run, const MetricRow& row) {
  const MadeFigures made = compute(run, row);
  keep(run, {&made, 1});
  return made.figures;
}

MadeFigures MetricStore::compute(RunId run, const MetricRow& row) {
  std::vector<Chunk> chunks;
  MetricFiguresBuilder figures;
  OverviewBuilder builder([&](int level, std::span<const Bucket> buckets) {
    if (!buckets.empty())
      chunks.push_back({level, buckets.front().first_step, buckets.back().last_step, to_bytes(buckets)});
  });
  for_points(run, row, -largest_count, largest_count, [&](std::span<const MetricPoint> points) {
    for (const MetricPoint& point : points) {
      figures.add(point.step, point.value);
      builder.add(point.step, point.value);
    }
  });
  builder.finish();
  MadeFigures made{.row = row, .figures = figures.finish(), .chunks = std::move(chunks)};
  if (made.figures.count < fewest_for_chunks) made.chunks.clear();
  return made;
}

// A locked or full file does not prevent the answer.
void MetricStore::keep(RunId run, std::span<const MadeFigures> made) {
  if (made.empty() || database_.read_only() || !is_run_over(database_, run)) return;
  try {
    Transaction transaction(database_);
    const bool is_over = is_run_over(database_, run);
    for (const MadeFigures& each : made) {
      if (quantity_of(each.row.metric)) continue;  // the run's own overviews have it
      // Stored only if nobody has resumed the run since, or appended to it.
      if (!is_over || count_of_values(database_, each.row.id) != each.figures.count) continue;
      keep_chunks(database_, each.row.id, each.chunks);
      stepladder::keep_figures(database_, derived_.seal(), each.row.id, each.figures);
    }
    transaction.commit();
  } catch (const StorageError&) {  // made again next time
  }
}

// Stores many metrics in one transaction, which is short all the same.
void MetricStore::refresh(RunId run) {
  try {
    const auto ended = read_run(database_, run);
    if (ended && is_visible(database_, run)) derived_.refresh(*ended);  // nobody deletes it
    keep_figures(run);
  } catch (const StorageError&) {  // another process may have deleted the run since its end
  }
}

void MetricStore::keep_figures(RunId run, std::size_t most) {
  constexpr std::size_t metrics_at_once = 2000;
  constexpr std::int64_t values_at_once = 100'000;
  if (database_.read_only() || !is_run_over(database_, run)) return;
  std::vector<MadeFigures> made;
  std::int64_t values = 0;
  for_metrics(database_, run, most, [&](const MetricRow& row) {
    if (quantity_of(row.metric) || kept_figures(row.id)) return;
    made.push_back(compute(run, row));
    values += made.back().figures.count;
    if (values < values_at_once && made.size() < metrics_at_once) return;
    keep(run, std::exchange(made, {}));
    values = 0;
  });
  keep(run, made);
}

struct MetricOfRunRow {
  RunId run = 0;
  bool is_over = false;
  MetricRow row;
  std::optional<MetricFigures> kept;
};

std::vector<Metric> MetricStore::all_names(std::size_t most) {
  std::vector<Metric> names;
  {
    Statement rows(database_,
                   "SELECT metrics.name, max(unit), max(direction), max(section) FROM runs JOIN metrics ON "
                   "metrics.run_id = runs.id WHERE " +
                       is_listed + " GROUP BY metrics.name ORDER BY metrics.name LIMIT ?",
                   static_cast<std::int64_t>(most));
    while (rows.step()) {
      Metric metric{.name = bounded(rows.text(0), longest_name),
                    .unit = bounded(rows.text(1), longest_name),
                    .section = bounded(rows.text(3), longest_name)};
      for (const Direction direction : {Direction::lower, Direction::higher})
        if (rows.text(2) == to_string(direction)) metric.direction = direction;
      names.push_back(std::move(metric));
    }
  }
  const std::size_t logged = names.size();
  for (const Quantity quantity : step_quantities) {
    const auto is_it = [&](const Metric& each) { return each.name == to_string(quantity); };
    if (std::none_of(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(logged), is_it))
      names.push_back(field_metric(to_string(quantity)));
  }
  return names;
}

// The listed runs that have a metric of this name; a field of the steps is one of every run.
std::vector<MetricOfRunRow> MetricStore::rows_named(const std::string& name) {
  const Metric field = field_metric(name);
  const bool is_field = quantity_of(field).has_value();
  std::vector<MetricOfRunRow> found;
  Statement rows(
      database_,
      fmt::format("SELECT runs.id, runs.status NOT IN ('queued', 'running'), metrics.id, field, {} FROM runs {}JOIN "
                  "metrics ON metrics.run_id = runs.id AND metrics.name = ? LEFT JOIN metric_figures ON "
                  "metric_figures.metric_id = metrics.id WHERE {}",
                  figure_columns, is_field ? "LEFT " : "", is_listed),
      name);
  while (rows.step()) {
    MetricOfRunRow read{.run = rows.integer(0), .is_over = rows.integer(1) != 0, .row = {}, .kept = {}};
    read.row.id = rows.integer(2);
    read.row.metric.name = name;
    read.row.metric.field = rows.is_null(2) ? name : rows.text(3);
    if (read.is_over && !rows.is_null(4)) read.kept = figures_in(derived_.seal(), read.row.id, rows, 4);
    found.push_back(std::move(read));
  }
  return found;
}

// The figures of a field that its summary has, without reading its steps.
std::optional<MetricFigures> MetricStore::figures_of_summary(RunId run, Quantity quantity) {
  if (quantity != Quantity::loss && quantity != Quantity::val_loss) return std::nullopt;
  const auto of = read_run(database_, run);
  const auto summary = of ? derived_.kept(*of) : std::nullopt;
  if (!summary) return std::nullopt;
  const bool is_loss = quantity == Quantity::loss;
  return MetricFigures{.last = is_loss ? summary->loss_last : summary->val_loss_last,
                       .lowest = is_loss ? summary->loss_min : summary->val_loss_min};
}

double MetricStore::value_at(RunId run, const MetricRow& row, std::int64_t step) {
  double value = missing;
  for_points(run, row, step, step, [&](std::span<const MetricPoint> points) { value = points.back().value; });
  return value;
}

FigureTable MetricStore::table(std::vector<MetricFigure> figures, const std::function<bool()>& interrupted) {
  using Kind = MetricFigure::Kind;
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < figures.size(); ++i) by_name[figures[i].metric].push_back(i);
  FigureTable table(std::move(figures));
  for (const auto& [name, columns] : by_name) {
    for (const MetricOfRunRow& found : rows_named(name)) {
      if (interrupted && interrupted()) return table;
      const std::optional<Quantity> quantity = quantity_of(found.row.metric);
      std::optional<MetricFigures> all = found.kept, few;
      if (quantity && found.is_over) few = figures_of_summary(found.run, *quantity);
      for (const std::size_t column : columns) {
        const MetricFigure& asked = table.figures()[column];
        const bool is_in_summary = few && (asked.kind == Kind::last || asked.kind == Kind::min);
        if (asked.kind != Kind::at && !is_in_summary && !all) all = make(found.run, found.row);
        const double value = asked.kind == Kind::at ? value_at(found.run, found.row, asked.step)
                                                    : figure_of(is_in_summary ? *few : *all, asked.kind);
        if (!is_missing(value)) table.set(found.run, column, value);
      }
    }
  }
  return table;
}

MetricAndFigures MetricStore::with_figures(RunId run, const MetricRow& row, bool is_over) {
  const auto kept = is_over && !quantity_of(row.metric) ? kept_figures(row.id) : std::nullopt;
  return {row.metric, kept ? *kept : make(run, row)};
}

std::vector<Metric> MetricStore::names(RunId run, std::size_t most) {
  std::vector<Metric> names;
  for (MetricRow& row : read_metrics(database_, run, most)) names.push_back(std::move(row.metric));
  return names;
}

std::int64_t MetricStore::count(RunId run) {
  return database_.integer("SELECT count(*) FROM metrics WHERE run_id = ?", run);
}

std::vector<MetricAndFigures> MetricStore::of_run(RunId run, std::size_t most) {
  keep_figures(run, most);
  const bool is_over = is_run_over(database_, run);
  std::vector<MetricAndFigures> metrics;
  for (const MetricRow& row : read_metrics(database_, run, most)) metrics.push_back(with_figures(run, row, is_over));
  return metrics;
}

// The fields of the steps that no logged metric replaces.
std::vector<Metric> MetricStore::fields_of(RunId run) {
  std::set<std::string> logged;
  Statement rows(database_, "SELECT DISTINCT field FROM metrics WHERE run_id = ? AND field IS NOT NULL");
  for (rows.bind(run); rows.step();) logged.insert(rows.text(0));
  std::vector<Metric> fields;
  for (const Quantity quantity : step_quantities) {
    const std::string name(to_string(quantity));
    if (!logged.contains(name) && !read_metric(database_, run, name)) fields.push_back(field_metric(name));
  }
  return fields;
}

std::vector<MetricAndFigures> MetricStore::all_of_run(RunId run, std::size_t most) {
  std::vector<MetricAndFigures> all;
  for (Metric& metric : fields_of(run)) {
    const MetricFigures figures = make(run, {.metric = metric});
    if (figures.count > 0) all.push_back({std::move(metric), figures});
  }
  std::vector<MetricAndFigures> logged = of_run(run, most);
  std::move(logged.begin(), logged.end(), std::back_inserter(all));
  return all;
}

void MetricStore::for_all_points(RunId run, const UseOfMetric& use) {
  const auto use_row = [&](const MetricRow& row, bool also_empty) {
    bool is_empty = true;
    for_points(run, row, -largest_count, largest_count, [&](std::span<const MetricPoint> points) {
      is_empty = false;
      use(row.metric, points);
    });
    if (is_empty && also_empty) use(row.metric, {});
  };
  for (const Metric& field : fields_of(run)) use_row({.metric = field}, false);
  for_metrics(database_, run, all_metrics, [&](const MetricRow& row) { use_row(row, true); });
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
                   "last_step >= ?3 ORDER BY last_step",
                   id, level, range.first);
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
