#include "app/panels/compare/grid.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace stepladder {
namespace {

using nlohmann::json;

json json_of(const ChartGrid& grid) {
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

}  // namespace

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
  std::sort(metrics.begin(), metrics.end());
  metrics.erase(std::unique(metrics.begin(), metrics.end()), metrics.end());
  return metrics;
}

std::string GridLayouts::name_of_now() const {
  for (const auto& [name, grid] : saved) {
    if (grid == now) return name;
  }
  return "";
}

json to_json(const GridLayouts& layouts) {
  json saved = json::object();
  for (const auto& [name, grid] : layouts.saved) saved[name] = json_of(grid);
  return {{"now", json_of(layouts.now)}, {"saved", saved}};
}

GridLayouts layouts_from(const json& read) {
  GridLayouts layouts;
  if (!read.is_object()) return layouts;
  if (const auto now = read.find("now"); now != read.end()) layouts.now = grid_from(*now);
  if (const auto saved = read.find("saved"); saved != read.end() && saved->is_object()) {
    for (const auto& [name, grid] : saved->items()) layouts.saved[name] = grid_from(grid);
  }
  return layouts;
}

}  // namespace stepladder
