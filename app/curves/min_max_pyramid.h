// A series that is drawn again and again and grows at its end: of every 4, 8, 16 ... consecutive values the lowest and
// the highest where they were, so that a frame costs what it shows and not what there is. Belongs to one thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "app/curves/decimate.h"

namespace stepladder {

class MinMaxPyramid {
 public:
  // Takes in what the series has more than at the last call; what was there stays as it was, else call clear() before.
  void follow(std::span<const double> x, std::span<const double> y);
  void clear() { *this = {}; }

  std::size_t points() const { return points_; }          // finite
  std::size_t not_finite() const { return not_finite_; }  // NaN or infinite; missing ones do not count

  // The same as decimate() of the series that was followed, but for blocks of values in the place of pixel columns:
  // what is drawn of a value does not change while the picture moves. At most 2 points a column, and a block more on
  // each side. `line` is overwritten.
  void show(std::span<const double> x, std::span<const double> y, double x_min, double x_max, int columns,
            Polyline& line) const;

 private:
  // Two points a block, in their order; y is missing where a block has no finite value.
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
