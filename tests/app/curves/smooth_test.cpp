#include "app/curves/smooth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "storage/records.h"

namespace stepladder {
namespace {

TEST(Smooth, TheFirstPointIsItselfAndAConstantStaysOne) {
  const std::vector<double> x{1, 2, 3, 4};
  const std::vector<double> smoothed = smooth(x, std::vector<double>{7, 7, 7, 7}, 0.9);
  for (const double value : smoothed) EXPECT_NEAR(value, 7, 1e-12);
  EXPECT_EQ(smooth(x, std::vector<double>{10, 0, 0, 0}, 0.9)[0], 10) << "debiased: no climb from zero";
}

TEST(Smooth, IsTheDebiasedAverageByItsFormula) {
  const std::vector<double> x{1, 2, 3};
  const std::vector<double> y{3, 1, 2};
  const double w = 0.6;
  const double expected = (3 * w * w + 1 * w + 2) / (w * w + w + 1);
  EXPECT_NEAR(smooth(x, y, w)[2], expected, 1e-12);
}

TEST(Smooth, AGapForgetsAsMuchAsTheStepsInIt) {
  const std::vector<double> x{1, 2, 3, 13};
  const std::vector<double> y{5, 5, 5, 1};
  const double w = 0.5;
  const double kept = std::pow(w, 10);
  const double past = 1 + w + w * w;
  EXPECT_NEAR(smooth(x, y, w)[3], (5 * past * kept + 1) / (past * kept + 1), 1e-12);
}

TEST(Smooth, WhatIsNotANumberStaysSoAndHarmsNothing) {
  const std::vector<double> x{1, 2, 3};
  const std::vector<double> smoothed = smooth(x, std::vector<double>{4, std::nan(""), 4}, 0.5);
  EXPECT_TRUE(std::isnan(smoothed[1]));
  EXPECT_NEAR(smoothed[2], 4, 1e-12);
  EXPECT_TRUE(is_missing(smooth(x, std::vector<double>{4, missing, 4}, 0.5)[1]));
  EXPECT_EQ(smooth(x, std::vector<double>{1, 5, 9}, 0), (std::vector<double>{1, 5, 9}));
  EXPECT_TRUE(smooth({}, {}, 0.5).empty());
}

}  // namespace
}  // namespace stepladder
