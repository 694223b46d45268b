#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "storage/analysis/verdict/run_spread.h"

namespace stepladder {
namespace {

RunAndSummary measured(double at, double dt_ms) {
  RunAndSummary each;
  each.run.status = RunStatus::finished;
  each.run.started_at = at;
  each.run.ended_at = at + 5;
  each.summary.dt_ms_median = dt_ms;
  each.summary.dt_ms_p25 = 0.99 * dt_ms;
  each.summary.dt_ms_p75 = 1.01 * dt_ms;
  return each;
}

TEST(MachineNoise, TellsStepsRunsAndDriftApart) {
  // 1 % slower from the first to the last, and half a percent up and down.
  std::vector<RunAndSummary> runs;
  for (int i = 0; i < 9; ++i)
    runs.push_back(measured(100 + 10 * i, 50 * std::exp(0.01 * i / 8 + (i % 2 ? 0.005 : -0.005))));
  const MachineNoise noise = noise_of(runs);
  EXPECT_EQ(noise.runs, 9u);
  EXPECT_DOUBLE_EQ(noise.seconds, 85);
  EXPECT_NEAR(noise.within, 0.02 / 1.349, 1e-9);
  EXPECT_NEAR(noise.drift, 0.01, 0.002);
  EXPECT_LT(noise.drift_ci95.low, noise.drift);
  EXPECT_LT(noise.drift_ci95.high, 0.03);
  const double between = std::sqrt(noise.between.variance());
  EXPECT_NEAR(between, 0.0064, 0.001);
  EXPECT_LT(noise.between_ci95.low, between);
  EXPECT_GT(noise.between_ci95.high, between);
}

// Of a deviation of 1 from 8 degrees of freedom: 0.675 to 1.916 by tables of chi-squared.
TEST(MachineNoise, AnIntervalOfADeviationIsThatOfTheTables) {
  const Interval ci95 = deviation_interval({.squares = 8, .freedom = 8, .from = SpreadFrom::repeats});
  EXPECT_NEAR(ci95.low, 0.6755, 0.002);
  EXPECT_NEAR(ci95.high, 1.9158, 0.02);
}

TEST(MachineNoise, OfTooFewRunsItSaysNothing) {
  RunAndSummary failed = measured(100, 50);
  failed.run.status = RunStatus::failed;
  const std::vector<RunAndSummary> runs{measured(90, 50), failed};
  const MachineNoise noise = noise_of(runs);
  EXPECT_EQ(noise.runs, 1u);
  EXPECT_FALSE(noise.between.known());
  EXPECT_FALSE(noise.between_ci95.known());
  EXPECT_TRUE(is_missing(noise.drift));
}

}  // namespace
}  // namespace stepladder
