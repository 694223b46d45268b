// Figures of metrics of many runs, as lists of runs show, sort and filter by them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "storage/analysis/metric_figures.h"
#include "storage/metric_figure.h"
#include "storage/records.h"

namespace stepladder {

// One of the figures; `missing` for Kind::at, which they don't hold.
double figure_of(const MetricFigures& figures, MetricFigure::Kind kind);

class FigureTable {
 public:
  FigureTable() = default;
  explicit FigureTable(std::vector<MetricFigure> figures) : figures_(std::move(figures)) {}

  const std::vector<MetricFigure>& figures() const { return figures_; }
  bool has(const MetricFigure& figure) const {
    return std::find(figures_.begin(), figures_.end(), figure) != figures_.end();
  }

  // `missing` if the run has no such value, or the table no such figure. A value that was logged as NaN is NaN.
  double value(RunId run, const MetricFigure& figure) const {
    const auto column = std::find(figures_.begin(), figures_.end(), figure);
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

}  // namespace stepladder
