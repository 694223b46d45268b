#include "storage/wording.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "storage/records.h"

namespace stepladder {

TEST(Wording, NumbersHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(compact(11500), "11.5 k");
  EXPECT_EQ(compact(1340000), "1.34 M");
  EXPECT_EQ(compact(999.6), "1.00 k");
  EXPECT_EQ(compact(28.44), "28.4");
  EXPECT_EQ(compact(0), "0.00");
  EXPECT_EQ(milliseconds_text(27.04), "27.0 ms");
  EXPECT_EQ(milliseconds_text(1520), "1.52 s");
  EXPECT_EQ(factor_text(1.4249), "1.42 x");
  EXPECT_EQ(factor_text(12.51), "12.5 x");
  EXPECT_EQ(factor_text(0.0123), "0.012 x") << "two digits at least";
  EXPECT_EQ(factor_text(0.0999), "0.10 x");
  EXPECT_EQ(grouped(1115394), "1,115,394");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(duration_text(8), "8 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(4320), "1 h 12 min");
}

TEST(Wording, ASmallShareIsNotNothing) {
  EXPECT_EQ(percent_text(0.004), "< 0.5 %");
  EXPECT_EQ(percent_text(0.006), "1 %");
  EXPECT_EQ(percent_text(0), "0 %");
}

TEST(Wording, WhatIsNotKnownIsADashAndWhatIsNotANumberSaysSo) {
  EXPECT_EQ(compact(missing), "-");
  EXPECT_EQ(loss_text(missing), "-");
  EXPECT_EQ(loss_text(std::nan("")), "NaN");
  EXPECT_EQ(loss_text(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(local_time_text(missing), "-");
}

TEST(Wording, NumbersBeyondAllMeasurementsStayNumbers) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(grouped(Limits::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(grouped(1e300), "1e+300");
  EXPECT_EQ(milliseconds_text(1e300), "1e+297 s");
  EXPECT_EQ(local_time_text(1e300), "-");
  EXPECT_EQ(local_time_text(-std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(duration_text(1e300), "2562047788015215 h 30 min");
  EXPECT_EQ(whole_number(-1e300), Limits::min());
}

TEST(Wording, AxisLabelsTellTheirNeighboursApart) {
  EXPECT_EQ(axis_text(0.0, 10), "0");
  EXPECT_EQ(axis_text(-0.0, 10), "0");
  EXPECT_EQ(axis_text(10, 50), "10");
  EXPECT_EQ(axis_text(22'500, 40'000), "22.5 k");
  EXPECT_EQ(axis_text(123'405, 41), "123.405 k");
  EXPECT_EQ(axis_text(123'410, 41), "123.41 k");
  EXPECT_EQ(axis_text(5.7680945, 5e-7), "5.7680945");
  EXPECT_EQ(axis_text(1.5e6, stepladder::missing), "1.5 M");
  EXPECT_EQ(axis_text(2.5e9, 1e9), "2.5 G");
}

TEST(Wording, LabelsOfLossesHaveNoLettersForThousandsOrBillions) {
  EXPECT_EQ(plain_axis_text(7e9, 1e10), "7e+09");
  EXPECT_EQ(plain_axis_text(40'000, 100'000), "40000");
  EXPECT_EQ(plain_axis_text(0.25, 1), "0.25");
  EXPECT_EQ(plain_axis_text(-0.0, 1), "0");
  EXPECT_EQ(plain_axis_text(-1e-17, 1), "0");
  EXPECT_EQ(axis_text(-1e-17, 1), "0");
  EXPECT_EQ(loss_text(7.25e9), "7.25e+09");
}

TEST(Wording, PluralsCountAndName) {
  EXPECT_EQ(plural(1, "run"), "1 run");
  EXPECT_EQ(plural(0, "run"), "0 runs");
  EXPECT_EQ(plural(2400, "run"), "2,400 runs");
  EXPECT_EQ(plural(1, "run waits", "runs wait"), "1 run waits");
  EXPECT_EQ(plural(2, "run waits", "runs wait"), "2 runs wait");
}

}  // namespace stepladder
