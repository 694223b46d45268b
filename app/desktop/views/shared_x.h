// The zoom of charts in a saved view.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "app/desktop/charts/charts.h"

namespace stepladder {

inline nlohmann::json zoom_of(const SharedX& x) {  // null: everything is visible
  return x.zoomed() ? nlohmann::json{x.low, x.high} : nlohmann::json();
}

// Without a zoom unless `zoom` is one. Throws nlohmann::json::exception.
inline SharedX shared_x_from(const nlohmann::json& zoom) {
  SharedX x;
  if (zoom.is_null()) return x;
  const auto ends = zoom.get<std::vector<double>>();
  if (ends.size() != 2 || !(ends[0] < ends[1])) return x;
  x.low = ends[0];
  x.high = ends[1];
  return x;
}

}  // namespace stepladder
