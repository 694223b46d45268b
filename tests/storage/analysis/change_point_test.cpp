#include "storage/analysis/change_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stepladder {
namespace {

// Steady at `level` with a little deterministic scatter.
std::vector<double> steady(std::size_t n, double level = 100) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(level * (1 + 0.002 * std::sin(static_cast<double>(i * i))));
  return values;
}

Series timed(const std::vector<double>& dt_ms) {
  Series series;
  for (const double dt : dt_ms) series.append({.step = static_cast<std::int64_t>(series.size()) + 1, .dt_ms = dt});
  return series;
}

TEST(Warmup, ends_at_the_very_step_where_times_drop) {
  for (const std::size_t slow : {12U, 20U, 23U, 37U, 60U}) {
    std::vector<double> dt = steady(200);
    for (std::size_t i = 0; i < slow; ++i) dt[i] *= 1.5;
    EXPECT_EQ(warmup_end(dt, 10), slow);
  }
}

TEST(Warmup, is_the_fixed_minimum_where_times_are_steady_from_there) {
  std::vector<double> dt = steady(200);
  EXPECT_EQ(warmup_end(dt, 10), 10);
  dt[0] = 5000;
  EXPECT_EQ(warmup_end(dt, 10), 10);
  dt[14] = 900;  // one slow step is an outlier, not a change of level
  EXPECT_EQ(warmup_end(dt, 10), 10);
  EXPECT_EQ(warmup_end({}, 0), 0);
  EXPECT_EQ(warmup_end(steady(5), 1), 1);
  EXPECT_EQ(warmup_end(std::vector<double>(50, 3.0), 5), 5);
}

TEST(Warmup, is_no_slow_drift_and_no_late_change) {
  std::vector<double> faster = steady(300);
  std::vector<double> slower = steady(300);
  std::vector<double> late = steady(300);
  for (std::size_t i = 0; i < 300; ++i) {
    faster[i] *= 1 - 0.0001 * static_cast<double>(i);
    slower[i] *= 1 + 0.0001 * static_cast<double>(i);
    if (i >= 250) late[i] *= 1.2;
  }
  EXPECT_EQ(warmup_end(faster, 10), 10);
  EXPECT_EQ(warmup_end(slower, 10), 10);
  EXPECT_EQ(warmup_end(late, 10), 10);
}

TEST(Warmup, passes_over_steps_without_a_time) {
  std::vector<double> dt = steady(200);
  for (std::size_t i = 0; i < 30; ++i) dt[i] *= 2;
  dt[15] = missing;
  dt[100] = 0;
  EXPECT_EQ(warmup_end(dt, 10), 30);
}

TEST(Spikes, stand_out_and_say_whether_they_are_regular) {
  std::vector<double> dt = steady(200);
  for (std::size_t i = 49; i < 200; i += 50) dt[i] = 180;
  const Spikes regular = find_spikes(timed(dt), 10);
  EXPECT_EQ(regular.at, (std::vector<std::size_t>{49, 99, 149, 199}));
  EXPECT_EQ(regular.period, 50);
  EXPECT_EQ(regular.regular, 4);
  EXPECT_FALSE(regular.validation);
  EXPECT_EQ(regular.pauses, 0);

  Series validated = timed(dt);
  for (std::size_t i = 49; i < 200; i += 50) validated.val_loss[i] = 3;
  EXPECT_TRUE(find_spikes(validated, 10).validation);

  std::vector<double> irregular = steady(200);
  irregular[33] = irregular[90] = irregular[171] = 150;
  EXPECT_EQ(find_spikes(timed(irregular), 10).at.size(), 3);
  EXPECT_EQ(find_spikes(timed(irregular), 10).period, 0);
  irregular[120] = 60'000;
  EXPECT_EQ(find_spikes(timed(irregular), 10).pauses, 1);
  EXPECT_TRUE(find_spikes(timed(steady(200)), 10).at.empty());
}

}  // namespace
}  // namespace stepladder
