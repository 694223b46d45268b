// The arrangement of the Compare view's charts: which ones, in what order, in how many columns and how high. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "storage/analysis/overview.h"
#include "storage/records.h"

namespace stepladder {

struct GridChart {
  Quantity quantity = Quantity::loss;
  bool is_gap = false;  // the difference from the baseline, or its ratio

  friend bool operator==(const GridChart&, const GridChart&) = default;
};

std::string name_of(const GridChart& chart);  // "loss", "loss.gap": for settings and tests

struct ChartGrid {
  int columns = 2;
  float row_height = 0;  // before scaling; 0: the rows share the window's height
  std::vector<GridChart> charts{{Quantity::loss}, {Quantity::loss, true}, {Quantity::tokens_per_s}, {Quantity::dt_ms}};

  // Moves a chart to the place of another one; those between make room.
  void move(std::size_t from, std::size_t to);
  std::vector<Quantity> metrics() const;  // of the charts, each once; fields of the steps first

  friend bool operator==(const ChartGrid&, const ChartGrid&) = default;
};

inline constexpr int most_columns = 3;
inline constexpr std::size_t most_charts = 500;
inline constexpr float least_row_height = 160;
inline constexpr float most_row_height = 1200;

// Skips what it doesn't understand.
nlohmann::json to_json(const ChartGrid& grid);
ChartGrid grid_from(const nlohmann::json& json);

}  // namespace stepladder
