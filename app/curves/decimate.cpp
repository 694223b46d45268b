#include "app/curves/decimate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "storage/records.h"

namespace stepladder {

Polyline decimate(std::span<const double> x, std::span<const double> y, double x_min, double x_max, int columns) {
  Polyline line;
  for (const double value : y) {
    if (std::isfinite(value)) {
      ++line.points;
    } else if (!is_missing(value)) {
      ++line.not_finite;
    }
  }
  const auto lower = static_cast<std::size_t>(std::ranges::lower_bound(x, x_min) - x.begin());
  const auto upper = static_cast<std::size_t>(std::ranges::upper_bound(x, x_max) - x.begin());
  // The nearest finite neighbours outside, for lines that cross the edge.
  std::size_t first = lower;
  while (first > 0 && !std::isfinite(y[first - 1])) --first;
  if (first > 0) --first;
  std::size_t last = upper;
  while (last < x.size() && !std::isfinite(y[last])) ++last;
  if (last < x.size()) ++last;

  std::size_t visible = 0;
  for (std::size_t i = lower; i < upper; ++i) visible += std::isfinite(y[i]) ? 1 : 0;
  line.off_range = line.points - visible;

  const auto add = [&](std::size_t i) {
    line.x.push_back(x[i]);
    line.y.push_back(y[i]);
  };
  if (columns < 1 || visible <= static_cast<std::size_t>(columns) * 4) {
    for (std::size_t i = first; i < last; ++i) {
      if (std::isfinite(y[i])) add(i);
    }
    return line;
  }
  const double width = (x_max - x_min) / columns;
  std::size_t i = first;
  while (i < last) {
    if (!std::isfinite(y[i])) {
      ++i;
      continue;
    }
    const double column = std::floor((x[i] - x_min) / width);
    std::array<std::size_t, 4> kept{i, i, i, i};  // first, lowest, highest, last
    for (; i < last && std::floor((x[i] - x_min) / width) == column; ++i) {
      if (!std::isfinite(y[i])) continue;
      if (y[i] < y[kept[1]]) kept[1] = i;
      if (y[i] > y[kept[2]]) kept[2] = i;
      kept[3] = i;
    }
    std::ranges::sort(kept);
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (k == 0 || kept[k] != kept[k - 1]) add(kept[k]);
    }
  }
  return line;
}

}  // namespace stepladder
