#include "storage/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace stepladder {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Series losses(const std::vector<double>& values, std::int64_t first_step = 1) {
  Series series;
  for (const double loss : values) series.append({.step = first_step++, .loss = loss});
  return series;
}

LossParity parity(const Series& base, const Series& run) {
  return loss_parity(base, 100, run, 100);
}

const Series base = losses({9, 8, 7, 6, 5, 4, 3, 2});  // its last quarter: steps 7 and 8

TEST(LossParity, is_judged_by_the_last_quarter) {
  // Far off at step 2, and yet the same in the end.
  const LossParity same = parity(base, losses({9, 8.5, 7, 6, 5, 4, 3.01, 2.03}));
  EXPECT_EQ(same.verdict, LossVerdict::same);
  EXPECT_DOUBLE_EQ(same.max_gap, 0.5);
  EXPECT_EQ(same.at_step, 2);
  EXPECT_NEAR(same.tail_gap, 0.02, 1e-12);

  const LossParity worse = parity(base, losses({9, 8, 7, 6, 5, 4, 3.02, 2.03}));
  EXPECT_EQ(worse.verdict, LossVerdict::worse);
  EXPECT_NEAR(worse.tail_gap, 0.025, 1e-12);
  EXPECT_EQ(worse.at_step, 8);

  const LossParity better = parity(base, losses({9, 8, 7, 6, 5, 4, 2.7, 1.8}));
  EXPECT_EQ(better.verdict, LossVerdict::better);
  EXPECT_NEAR(better.tail_gap, -0.25, 1e-12);
  EXPECT_NEAR(better.max_gap, 0.3, 1e-12);
  EXPECT_EQ(better.at_step, 7);
}

TEST(LossParity, a_run_with_itself_is_the_same) {
  const LossParity self = parity(base, base);
  EXPECT_EQ(self.verdict, LossVerdict::same);
  EXPECT_EQ(self.max_gap, 0);
  EXPECT_EQ(self.tail_gap, 0);
}

TEST(LossParity, only_equal_steps_are_compared) {
  // Shared: 6, 7 and 8; the last quarter of three is one.
  const LossParity late = parity(base, losses({4, 3.5, 2.01, 1, 1}, 6));
  EXPECT_EQ(late.verdict, LossVerdict::same);
  EXPECT_DOUBLE_EQ(late.max_gap, 0.5);
  EXPECT_EQ(late.at_step, 7);
  EXPECT_NEAR(late.tail_gap, 0.01, 1e-12);
}

TEST(LossParity, diverged_where_only_the_run_is_not_finite) {
  for (const double bad : {nan, infinity, -infinity}) {
    const LossParity diverged = parity(base, losses({9, 8, 7, 60, bad, bad, 3, 2}));
    EXPECT_EQ(diverged.verdict, LossVerdict::diverged);
    EXPECT_EQ(diverged.max_gap, infinity);
    EXPECT_EQ(diverged.at_step, 5);
    EXPECT_TRUE(is_missing(diverged.tail_gap));
  }
  EXPECT_EQ(parity(losses({9, nan, 7}), losses({9, nan, 7})).verdict, LossVerdict::same);
  EXPECT_EQ(parity(losses({9, nan, 7}), losses({9, 8, 7})).verdict, LossVerdict::same);
}

TEST(LossParity, a_loss_that_was_not_recorded_is_no_divergence) {
  EXPECT_EQ(parity(base, losses({9, 8, 7, 6, missing, 4, 3, 2})).verdict, LossVerdict::same);
}

TEST(LossParity, not_comparable) {
  EXPECT_EQ(loss_parity(base, 100, base, 200).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(loss_parity(base, 0, base, 0).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(loss_parity(base, 100, base, 0).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(loss_parity(base, 100, losses({nan}), 200).verdict, LossVerdict::not_comparable);
  for (const Series& other : {Series{}, losses({1, 2}, 100), losses({missing, missing})}) {
    EXPECT_EQ(parity(base, other).verdict, LossVerdict::not_comparable);
    EXPECT_TRUE(is_missing(parity(base, other).max_gap));
  }
  EXPECT_EQ(to_string(LossVerdict::not_comparable), "not-comparable");
  EXPECT_EQ(to_string(LossVerdict::diverged), "diverged");
}

TEST(Speedup, is_a_ratio_of_throughput) {
  EXPECT_DOUBLE_EQ(speedup({.dt_ms_median = 10, .tokens_per_s = 100}, {.dt_ms_median = 10, .tokens_per_s = 250}), 2.5);
}

TEST(Speedup, falls_back_on_time_where_tokens_are_not_known_for_either) {
  EXPECT_DOUBLE_EQ(speedup({.dt_ms_median = 30}, {.dt_ms_median = 10}), 3);
  EXPECT_DOUBLE_EQ(speedup({.dt_ms_median = 30, .tokens_per_s = 100}, {.dt_ms_median = 10}), 3);
  EXPECT_DOUBLE_EQ(speedup({.dt_ms_median = 30}, {.dt_ms_median = 10, .tokens_per_s = 100}), 3);
}

TEST(Speedup, is_missing_where_there_is_nothing_to_divide) {
  EXPECT_TRUE(is_missing(speedup({}, {})));
  EXPECT_TRUE(is_missing(speedup({.dt_ms_median = 30}, {})));
  EXPECT_TRUE(is_missing(speedup({}, {.dt_ms_median = 30})));
}

}  // namespace
}  // namespace stepladder
