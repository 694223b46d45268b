// The metrics of runs: numbers that they log beside their steps' own fields (docs/database.md, `metrics`).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/analysis/metric_figures.h"
#include "storage/analysis/overview.h"
#include "storage/metric_figure.h"
#include "storage/records.h"

namespace stepladder {

// Figures of metrics of many runs, as lists of runs show, sort and filter by them.

// One of the figures; `missing` for Kind::at, which they don't hold.
double figure_of(const MetricFigures& figures, MetricFigure::Kind kind);

class FigureTable {
 public:
  FigureTable() = default;
  explicit FigureTable(std::vector<MetricFigure> figures) : figures_(std::move(figures)) {}

  const std::vector<MetricFigure>& figures() const { return figures_; }
  bool has(const MetricFigure& figure) const { return std::ranges::find(figures_, figure) != figures_.end(); }

  // `missing` if the run has no such value, or the table no such figure. A value that was logged as NaN is NaN.
  double value(RunId run, const MetricFigure& figure) const {
    const auto column = std::ranges::find(figures_, figure);
    const auto row = rows_.find(run);
    if (column == figures_.end() || row == rows_.end()) return missing;
    return row->second[static_cast<std::size_t>(column - figures_.begin())];
  }

  void set(RunId run, std::size_t column, double value) {
    std::vector<double>& row = rows_[run];
    if (row.empty()) row.resize(figures_.size(), missing);
    row[column] = value;
  }

 private:
  std::vector<MetricFigure> figures_;
  std::map<RunId, std::vector<double>> rows_;  // of the runs that have any of them
};

inline constexpr std::size_t all_metrics = std::numeric_limits<std::int32_t>::max();

class Database;
class Derived;
struct MadeFigures;
struct MetricOfRunRow;
struct MetricRow;
struct OverviewSource;

struct MetricAndFigures {
  Metric metric;
  MetricFigures figures;
};

// A part of RunStore, which has its threads, locks and errors. A metric that isn't there has no values and no figures.
// The fields of the steps ("loss", "dt_ms" and so on: step_quantities) are metrics too, unless the run logged one of
// the same name.
class MetricStore {
 public:
  MetricStore(Database& database, Derived& derived) : database_(database), derived_(derived) {}

  // Sets what `metric` knows about the metric of this name; what it doesn't know stays as the file has it.
  void describe(RunId run, const Metric& metric);

  // Appends points in any order. If a step is stored already, the newer value counts and the older one is kept; the
  // same value again changes nothing.
  void append(RunId run, std::string_view name, std::span<const MetricPoint> points);

  // The names that the run logged, sorted: the first `most`, of `count`. Reads no values.
  std::vector<Metric> names(RunId run, std::size_t most = all_metrics);
  std::int64_t count(RunId run);

  // The same with figures. The figures of runs that are over come from a cache; keep_figures makes what it lacks.
  std::vector<MetricAndFigures> of_run(RunId run, std::size_t most = all_metrics);
  void keep_figures(RunId run, std::size_t most = all_metrics);

  // Call once a run's end is committed: makes the caches of its steps too. Never throws: what fails here is computed
  // when somebody asks for it.
  void refresh(RunId run);

  // The fields that the run's steps have and no logged metric replaces, then of_run. Reads all steps.
  std::vector<MetricAndFigures> all_of_run(RunId run, std::size_t most = all_metrics);

  // Nullopt if the run has no such metric, or no value of it.
  std::optional<MetricAndFigures> find(RunId run, std::string_view name);

  // Every name that a listed run has logged, once, with what is known of it, by name; then the fields of the steps that
  // no run has logged under their own names. Reads no values.
  std::vector<Metric> all_names(std::size_t most = all_metrics);

  // The table of these figures for all listed runs, in one query for each name where the cache has them. Values are
  // read for the others: those of runs under way, and of fields of the steps that summaries lack. `interrupted` is
  // called between runs; once it returns true, the rest is missing.
  FigureTable table(std::vector<MetricFigure> figures, const std::function<bool()>& interrupted = {});

  // The newest attempt of each step, in order, some thousands at a time; no read lock is held while `use` runs.
  using Use = std::function<void(std::span<const MetricPoint>)>;
  void for_points(RunId run, std::string_view name, const Use& use);
  void for_points(RunId run, std::string_view name, std::int64_t first_step, std::int64_t last_step, const Use& use);
  std::vector<MetricPoint> points(RunId run, std::string_view name);

  // The points of each metric that all_of_run lists, one metric after the other, as for_points; once without a point if
  // it has none. Needs no figures, so that it is quick for a million metrics.
  using UseOfMetric = std::function<void(const Metric& metric, std::span<const MetricPoint> points)>;
  void for_all_points(RunId run, const UseOfMetric& use);

  // As RunStore::overview, for a metric.
  Overview overview(RunId run, std::string_view name);
  Overview overview(RunId run, std::string_view name, std::int64_t first_step, std::int64_t last_step,
                    std::size_t columns);

 private:
  void for_points(RunId run, const MetricRow& row, std::int64_t first_step, std::int64_t last_step, const Use& use);
  std::optional<MetricRow> row_of(RunId run, std::string_view name);
  MetricAndFigures with_figures(RunId run, const MetricRow& row, bool is_over);
  std::optional<MetricFigures> kept_figures(std::int64_t metric);
  std::vector<Metric> fields_of(RunId run);
  MetricFigures make(RunId run, const MetricRow& row);
  MadeFigures compute(RunId run, const MetricRow& row);
  void keep(RunId run, std::span<const MadeFigures> made);
  std::vector<MetricOfRunRow> rows_named(const std::string& name);
  double value_at(RunId run, const MetricRow& row, std::int64_t step);
  std::optional<MetricFigures> figures_of_summary(RunId run, Quantity quantity);
  OverviewSource source(RunId run, const MetricRow& row);

  Database& database_;
  Derived& derived_;
};

}  // namespace stepladder
