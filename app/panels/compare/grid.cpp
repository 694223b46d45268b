#include "app/panels/compare/grid.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stepladder {
using nlohmann::json;

std::string name_of(const GridChart& chart) {
  return std::string(to_string(chart.quantity)) + (chart.is_gap ? ".gap" : "");
}

void ChartGrid::move(std::size_t from, std::size_t to) {
  if (from >= charts.size() || to >= charts.size()) return;
  const auto at = [&](std::size_t place) { return charts.begin() + static_cast<std::ptrdiff_t>(place); };
  if (from < to) {
    std::rotate(at(from), at(from) + 1, at(to) + 1);
  } else {
    std::rotate(at(to), at(from), at(from) + 1);
  }
}

std::vector<Quantity> ChartGrid::metrics() const {
  std::vector<Quantity> metrics;
  for (const GridChart& chart : charts) metrics.push_back(chart.quantity);
  std::ranges::sort(metrics);
  metrics.erase(std::unique(metrics.begin(), metrics.end()), metrics.end());
  return metrics;
}

json to_json(const ChartGrid& grid) {
  json charts = json::array();
  for (const GridChart& chart : grid.charts)
    charts.push_back({{"metric", to_string(chart.quantity)}, {"gap", chart.is_gap}});
  return {{"columns", grid.columns}, {"row_height", grid.row_height}, {"charts", charts}};
}

ChartGrid grid_from(const json& read) {
  ChartGrid grid;
  if (!read.is_object()) return grid;
  grid.columns = std::clamp(read.value("columns", 2), 1, most_columns);
  const float height = read.value("row_height", 0.0f);
  grid.row_height = height > 0 ? std::clamp(height, least_row_height, most_row_height) : 0;
  const auto charts = read.find("charts");
  if (charts == read.end() || !charts->is_array()) return grid;
  grid.charts.clear();
  for (const json& chart : *charts) {
    if (!chart.is_object() || grid.charts.size() == most_charts) continue;
    if (const std::string name = chart.value("metric", ""); !name.empty())
      grid.charts.push_back({quantity_named(name), chart.value("gap", false)});
  }
  return grid;
}

}  // namespace stepladder
