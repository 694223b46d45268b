#include "app/curves/decimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "storage/records.h"

namespace stepladder {
namespace {

std::vector<double> counting(std::size_t n) {
  std::vector<double> x(n);
  std::iota(x.begin(), x.end(), 1.0);
  return x;
}

TEST(Decimate, AShortSeriesIsCopied) {
  const auto x = counting(10);
  const auto line = decimate(x, x, 1, 10, 100);
  EXPECT_EQ(line.x, x);
  EXPECT_EQ(line.points, 10u);
  EXPECT_EQ(line.off_range, 0u);
}

TEST(Decimate, ASpikeNeverVanishes) {
  const auto x = counting(1'000'000);
  std::vector<double> y(x.size(), 2.0);
  y[765'432] = 99;
  y[123'456] = -7;
  const auto line = decimate(x, y, 1, 1e6, 800);
  EXPECT_LE(line.x.size(), 800u * 4 + 8);
  EXPECT_EQ(*std::max_element(line.y.begin(), line.y.end()), 99);
  EXPECT_EQ(*std::min_element(line.y.begin(), line.y.end()), -7);
  EXPECT_TRUE(std::is_sorted(line.x.begin(), line.x.end()));
  EXPECT_EQ(line.x.front(), 1);
  EXPECT_EQ(line.x.back(), 1e6);
}

TEST(Decimate, ZoomedInTheTruePointsAreThereWithTheirNeighbours) {
  const auto x = counting(100'000);
  const auto line = decimate(x, x, 500, 520, 800);
  EXPECT_EQ(line.x.front(), 499);
  EXPECT_EQ(line.x.back(), 521);
  EXPECT_EQ(line.x.size(), 23u);
  EXPECT_EQ(line.off_range, 100'000u - 21);
}

TEST(Decimate, MissingValuesArePassedOverAndNotANumberIsCounted) {
  const std::vector<double> x = {1, 2, 3, 4, 5};
  const std::vector<double> y = {1, missing, std::nan(""), std::numeric_limits<double>::infinity(), 5};
  const auto line = decimate(x, y, 1, 5, 100);
  EXPECT_EQ(line.x, (std::vector<double>{1, 5}));
  EXPECT_EQ(line.points, 2u);
  EXPECT_EQ(line.not_finite, 2u);
}

TEST(Decimate, NothingAtAll) {
  const auto line = decimate({}, {}, 0, 1, 100);
  EXPECT_TRUE(line.x.empty());
  EXPECT_EQ(line.points, 0u);
}

}  // namespace
}  // namespace stepladder
