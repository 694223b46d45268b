#include "app/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "storage/records.h"

namespace stepladder {

TEST(Format, NumbersHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(compact(11500), "11.5 k");
  EXPECT_EQ(compact(1340000), "1.34 M");
  EXPECT_EQ(compact(999.6), "1.00 k");
  EXPECT_EQ(compact(28.44), "28.4");
  EXPECT_EQ(compact(0), "0.00");
  EXPECT_EQ(milliseconds_text(27.04), "27.0 ms");
  EXPECT_EQ(milliseconds_text(1520), "1.52 s");
  EXPECT_EQ(factor_text(1.4249), "1.42 x");
  EXPECT_EQ(factor_text(12.51), "12.5 x");
  EXPECT_EQ(grouped(1115394), "1,115,394");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(duration_text(8), "8 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(4320), "1 h 12 min");
}

TEST(Format, WhatIsNotKnownIsADashAndWhatIsNotANumberSaysSo) {
  EXPECT_EQ(compact(missing), "-");
  EXPECT_EQ(loss_text(missing), "-");
  EXPECT_EQ(loss_text(std::nan("")), "NaN");
  EXPECT_EQ(loss_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(local_time_text(missing), "-");
}

TEST(Format, NumbersBeyondAllMeasurementsStayNumbers) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(grouped(Limits::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(wording::grouped(1e300), "1e+300");
  EXPECT_EQ(milliseconds_text(1e300), "1e+297 s");
  EXPECT_EQ(local_time_text(1e300), "-");
  EXPECT_EQ(local_time_text(-std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(duration_text(1e300), "2562047788015215 h 30 min");
  EXPECT_EQ(wording::whole(-1e300), Limits::min());
}

TEST(Format, AxisLabelsTellTheirNeighboursApart) {
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

TEST(PlainAxis, of_losses_has_no_letters_for_thousands_or_billions) {
  EXPECT_EQ(plain_axis_text(7e9, 1e10), "7e+09");
  EXPECT_EQ(plain_axis_text(40'000, 100'000), "40000");
  EXPECT_EQ(plain_axis_text(0.25, 1), "0.25");
  EXPECT_EQ(plain_axis_text(-0.0, 1), "0");
  EXPECT_EQ(plain_axis_text(-1e-17, 1), "0");
  EXPECT_EQ(axis_text(-1e-17, 1), "0");
  EXPECT_EQ(loss_text(7.25e9), "7.25e+09");
}

TEST(InPrint, the_signs_are_those_of_print) {
  EXPECT_EQ(in_print("1.42 x"), "1.42\u00D7");
  EXPECT_EQ(in_print("1.42 x the baseline (95 %: 1.380 - 1.460)"),
            "1.42\u00D7 the baseline (95 %: 1.380 \u2013 1.460)");
  EXPECT_EQ(in_print("6 x 124,439,808 x 13.6 k x (2 + 3)"), "6 \u00D7 124,439,808 \u00D7 13.6 k \u00D7 (2 + 3)");
  EXPECT_EQ(in_print("V x C, 8 x NVIDIA A100"), "V \u00D7 C, 8 \u00D7 NVIDIA A100");
  EXPECT_EQ(in_print("B 4 x T 1024"), "B 4 \u00D7 T 1024");
  EXPECT_EQ(in_print("x 747 MFLOP"), "\u00D7 747 MFLOP");
  EXPECT_EQ(in_print("x ~747 MFLOP"), "\u00D7 ~747 MFLOP");
  EXPECT_EQ(in_print("7 tokens/s, x 6 x 124 parameters"), "7 tokens/s, \u00D7 6 \u00D7 124 parameters");
  EXPECT_EQ(in_print("5 s +/- 1 s, 3 -> 2"), "5 s \u00B1 1 s, 3 \u2192 2");
  EXPECT_EQ(in_print("an x-axis - as it is, 2 xylophones, a->b"), "an x-axis - as it is, 2 xylophones, a->b");
}

TEST(Format, LatenessNamesTheWriterThatHoldsValuesBack) {
  EXPECT_EQ(lateness_text("tensorboard", 95.4),
            "newest value 95 s old; TensorBoard's writer holds values back for up to 120 s");
  EXPECT_EQ(lateness_text("mlflow", 95), "");
  stepladder::Run run{.status = RunStatus::running, .environment = R"({"followed_store":"tensorboard"})"};
  EXPECT_NE(lateness_text(run, unix_now() - 40), "");
  EXPECT_EQ(lateness_text(run, unix_now()), "");
  EXPECT_EQ(lateness_text(run, missing), "");
  run.status = RunStatus::finished;
  EXPECT_EQ(lateness_text(run, unix_now() - 40), "");
}

}  // namespace stepladder
