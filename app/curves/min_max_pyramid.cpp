// Keeps minima and maxima of a growing series on levels, each from the one below, so that a frame reads only as many
// blocks as it has pixels. Blocks are aligned to the series' start; the incomplete last one is computed on each call.
#include "app/curves/min_max_pyramid.h"

#include <algorithm>
#include <cmath>

#include "storage/records.h"

namespace stepladder {
namespace {

constexpr std::size_t first_width = 4;    // values in a block of the finest level
constexpr std::size_t fewest_blocks = 8;  // of the coarsest
constexpr std::size_t values_per_count = 64;

// Lowest and highest of some values, as two points in their order.
struct Extremes {
  double low_x = missing, low = missing, high_x = missing, high = missing;

  void add(double x, double y) {
    if (!std::isfinite(y)) return;
    if (!(y >= low)) low_x = x, low = y;
    if (!(y <= high)) high_x = x, high = y;
  }
  void append_to(std::vector<double>& x, std::vector<double>& y) const {
    const bool falls = high_x < low_x;
    x.push_back(falls ? high_x : low_x);
    x.push_back(falls ? low_x : high_x);
    y.push_back(falls ? high : low);
    y.push_back(falls ? low : high);
  }
};

}  // namespace

void MinMaxPyramid::follow(std::span<const double> x, std::span<const double> y) {
  for (std::size_t i = taken_; i < y.size(); ++i) {
    if (i % values_per_count == 0) finite_before_.push_back(points_);
    points_ += std::isfinite(y[i]) ? 1 : 0;
    not_finite_ += !std::isfinite(y[i]) && !is_missing(y[i]) ? 1 : 0;
  }
  taken_ = y.size();
  // A level combines whole blocks of the one below: of the series for the finest, else two points per block.
  std::span<const double> below_x = x;
  std::span<const double> below_y = y;
  for (std::size_t k = 0; below_y.size() / first_width >= (k == 0 ? first_width : fewest_blocks); ++k) {
    if (k == levels_.size()) levels_.emplace_back();
    Level& level = levels_[k];
    const std::size_t blocks = below_y.size() / first_width;
    for (std::size_t block = level.y.size() / 2; block < blocks; ++block) {
      Extremes extremes;
      for (std::size_t i = block * first_width; i < (block + 1) * first_width; ++i)
        extremes.add(below_x[i], below_y[i]);
      extremes.append_to(level.x, level.y);
    }
    below_x = level.x;
    below_y = level.y;
  }
}

std::size_t MinMaxPyramid::finite_before(std::span<const double> y, std::size_t i) const {
  if (points_ == taken_) return i;
  const std::size_t place = std::min(i / values_per_count, finite_before_.size() - 1);
  std::size_t count = finite_before_[place];
  for (std::size_t k = place * values_per_count; k < i; ++k) count += std::isfinite(y[k]) ? 1 : 0;
  return count;
}

void MinMaxPyramid::show(std::span<const double> x, std::span<const double> y, double x_min, double x_max, int columns,
                         Polyline& line) const {
  line.x.clear();
  line.y.clear();
  line.points = points_;
  line.not_finite = not_finite_;
  line.off_range = points_;
  if (taken_ == 0) return;
  const auto lower = static_cast<std::size_t>(std::ranges::lower_bound(x, x_min) - x.begin());
  const auto upper = static_cast<std::size_t>(std::ranges::upper_bound(x, x_max) - x.begin());
  if (upper > lower) line.off_range -= finite_before(y, upper) - finite_before(y, lower);
  const auto add = [&](std::span<const double> from_x, std::span<const double> from_y, std::size_t i) {
    if (!std::isfinite(from_y[i])) return;
    line.x.push_back(from_x[i]);
    line.y.push_back(from_y[i]);
  };
  const auto add_all = [&](std::span<const double> from_x, std::span<const double> from_y, std::size_t begin,
                           std::size_t end) {
    if (points_ == taken_) {  // the usual case: every value is finite
      const auto part = [&](std::span<const double> values) { return values.subspan(begin, end - begin); };
      line.x.assign(part(from_x).begin(), part(from_x).end());
      line.y.assign(part(from_y).begin(), part(from_y).end());
      return;
    }
    for (std::size_t i = begin; i < end; ++i) add(from_x, from_y, i);
  };
  const std::size_t most = 2 * static_cast<std::size_t>(std::max(columns, 1));
  if (upper - std::min(lower, upper) <= most || levels_.empty()) {
    // With the nearest finite neighbours outside, for lines that cross the edge.
    std::size_t first = lower;
    while (first > 0 && !std::isfinite(y[first - 1])) --first;
    if (first > 0) --first;
    std::size_t last = upper;
    while (last < y.size() && !std::isfinite(y[last])) ++last;
    if (last < y.size()) ++last;
    add_all(x, y, first, last);
    return;
  }
  std::size_t k = 0;
  std::size_t width = first_width;
  while (k + 1 < levels_.size() && 2 * (upper - lower) / width > most) ++k, width *= 2;
  const Level& level = levels_[k];
  const std::size_t blocks = level.y.size() / 2;
  const std::size_t first = lower / width - (lower >= width ? 1 : 0);
  const std::size_t last = std::min(blocks, upper / width + 2);
  add_all(level.x, level.y, 2 * first, 2 * last);
  if (last < blocks) return;
  // Values after the last whole block.
  Extremes rest;
  for (std::size_t i = std::max(blocks * width, lower); i + 1 < y.size(); ++i) rest.add(x[i], y[i]);
  std::vector<double> rest_x;
  std::vector<double> rest_y;
  rest.append_to(rest_x, rest_y);
  for (std::size_t i = 0; i < rest_y.size(); ++i) add(rest_x, rest_y, i);
  if (blocks * width < y.size()) add(x, y, y.size() - 1);
}

}  // namespace stepladder
