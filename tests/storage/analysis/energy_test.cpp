#include "storage/analysis/energy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stepladder {
namespace {

SystemMetrics look(std::int64_t step, double at, double power_w) {
  return {.step = step, .at = at, .gpu_power_w = power_w};
}

TEST(Energy, of_a_ramp_is_its_area) {
  // From 100 W to 300 W in 10 s, sampled every half second: 2,000 J.
  std::vector<SystemMetrics> metrics;
  for (int i = 0; i <= 20; ++i) metrics.push_back(look(i, 1e9 + 0.5 * i, 100 + 10 * i));
  const Energy energy = energy_of(metrics, 0, 1000);
  EXPECT_NEAR(energy.wh, 2000.0 / 3600, 1e-9);
  EXPECT_DOUBLE_EQ(energy.seconds, 10);
  EXPECT_DOUBLE_EQ(energy.mean_power_w, 200);
  EXPECT_DOUBLE_EQ(energy.joules_per_token, 0.2);
  EXPECT_DOUBLE_EQ(energy.tokens_per_s_per_w, 5);
}

TEST(Energy, of_a_wave_converges) {
  // 200 + 100 sin(t) W over two periods.
  const double pi = std::acos(-1.0);
  std::vector<SystemMetrics> metrics;
  for (int i = 0; i <= 400; ++i) metrics.push_back(look(1, 0.01 * pi * i, 200 + 100 * std::sin(0.01 * pi * i)));
  EXPECT_NEAR(energy_of(metrics, 0, 1).mean_power_w, 200, 1e-9);
}

TEST(Energy, gaps_are_not_bridged) {
  const std::vector<SystemMetrics> metrics{look(1, 0, 100), look(2, 5, 100), look(2, 10.1, 900), look(3, 11.1, 300)};
  const Energy energy = energy_of(metrics, 0, 10);
  EXPECT_DOUBLE_EQ(energy.seconds, 6);
  EXPECT_DOUBLE_EQ(energy.wh, (500.0 + 600) / 3600);
}

TEST(Energy, per_token_is_that_of_steady_steps) {
  // Five seconds of compiling at 50 W, then 400 W.
  std::vector<SystemMetrics> metrics;
  for (int i = 0; i <= 5; ++i) metrics.push_back(look(i < 5 ? 0 : 3, i, 50));
  for (int i = 6; i <= 15; ++i) metrics.push_back(look(i, i, 400));
  const Energy energy = energy_of(metrics, 6, 800);
  EXPECT_DOUBLE_EQ(energy.steady_seconds, 9);
  EXPECT_DOUBLE_EQ(energy.mean_power_w, 400);
  EXPECT_DOUBLE_EQ(energy.joules_per_token, 0.5);
  EXPECT_DOUBLE_EQ(energy.wh, (5 * 50 + 225 + 9 * 400) / 3600.0) << "warm-up counts for the run";
}

TEST(Energy, is_not_known_without_power) {
  const std::vector<SystemMetrics> none{look(1, 0, missing), look(2, 1, missing)};
  EXPECT_TRUE(is_missing(energy_of(none, 0, 10).wh));
  EXPECT_TRUE(is_missing(energy_of({}, 0, 10).joules_per_token));
  const std::vector<SystemMetrics> some{look(1, 0, 100), look(2, 1, missing), look(3, 2, 300), look(4, 1.5, 300)};
  EXPECT_DOUBLE_EQ(energy_of(some, 0, missing).mean_power_w, 200) << "a look without a power, a clock that went back";
  EXPECT_TRUE(is_missing(energy_of(some, 0, missing).joules_per_token));
  EXPECT_TRUE(is_missing(energy_of(std::vector{look(1, 0, 100)}, 0, 10).wh)) << "one look has no time";
}

}  // namespace
}  // namespace stepladder
