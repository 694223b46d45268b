// Reduces points to the pixels' resolution without losing a spike: per pixel column the first, lowest, highest and
// last.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stepladder {

struct Polyline {
  std::vector<double> x;
  std::vector<double> y;
  std::size_t points = 0;      // finite points before
  std::size_t off_range = 0;   // finite points outside the visible x range
  std::size_t not_finite = 0;  // NaN or infinite values (missing ones do not count)
};

// `x` ascends; both spans have the same length. Keeps points inside [x_min, x_max] and one neighbour on each side, so
// that lines reach the edge. Returns at most 4 points per column; copies a series that fits. Skips missing values.
Polyline decimate(std::span<const double> x, std::span<const double> y, double x_min, double x_max, int columns);

}  // namespace stepladder
