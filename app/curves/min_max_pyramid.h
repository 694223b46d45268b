// Reduces a long series that may grow at its end: keeps the lowest and highest of every 4, 8, 16 ... consecutive
// values, so that a frame's cost depends on the pixels, not on the length. One thread owns it while it grows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "app/curves/decimate.h"

namespace stepladder {

class MinMaxPyramid {
 public:
  // Adds the values that were appended since the last call. If earlier values changed, call clear() first.
  void follow(std::span<const double> x, std::span<const double> y);
  void clear() { *this = {}; }

  std::size_t points() const { return points_; }          // finite
  std::size_t not_finite() const { return not_finite_; }  // NaN or infinite; missing ones do not count

  // Like decimate(), with blocks of values instead of pixel columns, so that the points stay the same while the user
  // pans. At most 2 points per column, plus one block on each side. Overwrites `line`.
  void show(std::span<const double> x, std::span<const double> y, double x_min, double x_max, int columns,
            Polyline& line) const;

 private:
  // Two points per block, in their order; y is missing if a block has no finite value.
  struct Level {
    std::vector<double> x;
    std::vector<double> y;
  };
  std::size_t finite_before(std::span<const double> y, std::size_t i) const;

  std::vector<Level> levels_;
  std::vector<std::size_t> finite_before_;  // each 64th value
  std::size_t taken_ = 0;
  std::size_t points_ = 0;
  std::size_t not_finite_ = 0;
};

}  // namespace stepladder
