#include "app/curves/min_max_pyramid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "storage/records.h"

namespace stepladder {
namespace {

struct Data {
  std::vector<double> x, y;
  explicit Data(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back(static_cast<double>(3 * i + 1));
      y.push_back(std::sin(static_cast<double>(i)) + 5);
    }
  }
};

Polyline shown(const MinMaxPyramid& levels, const Data& data, double x_min, double x_max, int columns) {
  Polyline line;
  levels.show(data.x, data.y, x_min, x_max, columns, line);
  EXPECT_TRUE(std::is_sorted(line.x.begin(), line.x.end()));
  return line;
}

TEST(MinMaxPyramid, NoSpikeIsLostAtAnyZoomAndPointsAreFew) {
  for (const std::size_t place : {0u, 1u, 777u, 54'321u, 99'998u, 99'999u, 100'002u}) {
    Data data(100'003);
    data.y[place] = 1000;
    MinMaxPyramid levels;
    levels.follow(data.x, data.y);
    for (const double width : {9.0, 300.0, 12'345.0, 1e6}) {
      for (const int columns : {8, 50, 1000}) {
        const Polyline line = shown(levels, data, data.x[place] - width, data.x[place] + width / 2, columns);
        const auto peak = std::find(line.y.begin(), line.y.end(), 1000);
        ASSERT_NE(peak, line.y.end()) << place << " " << width << " " << columns;
        EXPECT_EQ(line.x[static_cast<std::size_t>(peak - line.y.begin())], data.x[place]);
        EXPECT_LE(line.x.size(), std::max<std::size_t>(2u * static_cast<unsigned>(columns), 64) + 8);
      }
    }
  }
}

TEST(MinMaxPyramid, CountsAsDecimateDoesAndShowsTheValuesThemselvesWhereTheyAreFew) {
  Data data(5000);
  for (std::size_t i = 0; i < data.y.size(); i += 7) data.y[i] = missing;
  for (std::size_t i = 3; i < data.y.size(); i += 11) data.y[i] = std::nan("");
  for (std::size_t i = 100; i < 900; ++i) data.y[i] = missing;
  data.y[4000] = std::numeric_limits<double>::infinity();
  MinMaxPyramid levels;
  levels.follow(data.x, data.y);
  for (const auto& [low, high] : {std::pair(0.0, 1e5), std::pair(50.0, 400.0), std::pair(2000.0, 2500.0),
                                  std::pair(-10.0, -5.0), std::pair(2e4, 3e4)}) {
    const Polyline wanted = decimate(data.x, data.y, low, high, 100'000);
    const Polyline line = shown(levels, data, low, high, 400);
    EXPECT_EQ(line.points, wanted.points);
    EXPECT_EQ(line.not_finite, wanted.not_finite);
    EXPECT_EQ(line.off_range, wanted.off_range);
    if (high - low < 1000) {
      EXPECT_EQ(line.x, wanted.x);
      EXPECT_EQ(line.y, wanted.y);
    }
  }
}

TEST(MinMaxPyramid, GrowAsTheSeriesDoes) {
  Data data(30'000);
  MinMaxPyramid at_once;
  at_once.follow(data.x, data.y);
  MinMaxPyramid in_parts;
  for (std::size_t count = 0; count < data.y.size(); count += 37)
    in_parts.follow(std::span(data.x).first(count), std::span(data.y).first(count));
  in_parts.follow(data.x, data.y);
  for (const int columns : {10, 333, 2000}) {
    const Polyline a = shown(at_once, data, 100, 80'000, columns);
    const Polyline b = shown(in_parts, data, 100, 80'000, columns);
    EXPECT_EQ(a.x, b.x);
    EXPECT_EQ(a.y, b.y);
  }
  MinMaxPyramid none;
  none.follow({}, {});
  EXPECT_TRUE(shown(none, Data(0), 0, 1, 10).x.empty());
}

}  // namespace
}  // namespace stepladder
