// Many curves as one picture: no value is missing in it, however many curves there are.
#include "app/curves/density.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stepladder {
namespace {

std::vector<ColumnRange> ranges_of(const std::vector<double>& x, const std::vector<double>& y, const PictureAxis& axis,
                                   bool is_path = true) {
  std::vector<ColumnRange> ranges(static_cast<std::size_t>(axis.parts));
  add_to_columns(x, y, y, is_path, axis, ranges);
  return ranges;
}

TEST(Density, EveryValueOfEveryCurveIsInItsCell) {
  const PictureAxis x{.low = 0, .high = 10'000, .parts = 300};
  const PictureAxis y{.low = -20, .high = 1000, .parts = 200};
  DensityPicture picture;
  picture.start(x.parts, y);
  std::vector<std::vector<double>> values;
  std::vector<double> steps;
  for (int i = 0; i <= 10'000; ++i) steps.push_back(i);
  for (int curve = 0; curve < 50; ++curve) {
    std::vector<double>& one = values.emplace_back();
    for (const double step : steps) one.push_back(10 * std::sin(step / (10 + curve)));
    one[static_cast<std::size_t>(137 * curve + 11)] = 900 + curve;  // a spike of one step, elsewhere in each curve
    picture.add(ranges_of(steps, one, x));
  }
  const std::span<const std::int32_t> counts = picture.counts();
  const auto at = [&](double step, double value) {
    const auto column = std::min(static_cast<std::size_t>(x.place(step)), 299UL);
    const auto row = 199 - std::min(static_cast<std::size_t>(y.place(value)), 199UL);
    // A value on a cell's edge may be in either.
    return counts[column * 200 + row] + (row < 199 ? counts[column * 200 + row + 1] : 0);
  };
  for (const std::vector<double>& one : values) {
    for (std::size_t i = 0; i < steps.size(); ++i) ASSERT_GT(at(steps[i], one[i]), 0) << i << ": " << one[i];
    const auto [lowest, highest] = std::minmax_element(one.begin(), one.end());
    EXPECT_GE(at(static_cast<double>(highest - one.begin()), *highest), 1);
    EXPECT_GE(at(static_cast<double>(lowest - one.begin()), *lowest), 1);
  }
  EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 50) << "where all of them are";
}

TEST(Density, ALineCrossesTheColumnsBetweenItsPoints) {
  const PictureAxis axis{.low = 0, .high = 10, .parts = 10};
  const auto line = ranges_of({-5, 5, 15}, {0, 10, 0}, axis);
  for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(line[i].known()) << i;
  EXPECT_DOUBLE_EQ(line[0].low, 5) << "from a neighbour outside";
  EXPECT_DOUBLE_EQ(line[4].high, 10);
  EXPECT_DOUBLE_EQ(line[9].low, 5);
  const auto points = ranges_of({-5, 5, 15}, {0, 10, 0}, axis, false);
  EXPECT_EQ(std::count_if(points.begin(), points.end(), [](const ColumnRange& range) { return range.known(); }), 1);
}

TEST(Density, ANaNIsSkippedAndTheEndsCount) {
  const double nan = std::nan("");
  const PictureAxis axis{.low = 1, .high = 4, .parts = 3};
  const auto ranges = ranges_of({0, 1, 2, 3, 4, 5}, {nan, 7, nan, -3, 9, nan}, axis);
  EXPECT_EQ(ranges[0].high, 7);
  EXPECT_EQ(ranges[2].low, -3);
  EXPECT_EQ(ranges[2].high, 9) << "the last place belongs to the last column";
}

TEST(Density, LogarithmicAxes) {
  const PictureAxis x{.low = 1, .high = 1000, .is_log = true, .parts = 3};
  const auto ranges = ranges_of({0, 1, 10, 100, 1000}, {5, 0, 0.01, 0.5, 100}, x);
  EXPECT_EQ(ranges[0].low, 0);
  EXPECT_EQ(ranges[2].high, 100);
  DensityPicture picture;
  picture.start(3, {.low = 0.1, .high = 10, .is_log = true, .parts = 2});
  picture.add(ranges);
  const auto counts = picture.counts();
  EXPECT_EQ(std::vector(counts.begin(), counts.end()), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}))
      << "0 is below any logarithmic axis, and 100 above this one";
}

}  // namespace
}  // namespace stepladder
