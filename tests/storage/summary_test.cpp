#include "storage/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace stepladder {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

double quantile_of(std::vector<double> values, double q) {
  return quantile(values, q);
}

Series series_of(const std::vector<StepRecord>& steps) {
  Series series;
  for (const StepRecord& step : steps) series.append(step);
  return series;
}

TEST(Quantile, is_linear_between_order_statistics) {
  const std::vector<double> values{7, 1, 3, 10};  // place q x 3 in 1, 3, 7, 10
  EXPECT_DOUBLE_EQ(quantile_of(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0.5), 5);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0.75), 7.75);
  EXPECT_DOUBLE_EQ(quantile_of(values, 0.9), 9.1);
  EXPECT_DOUBLE_EQ(quantile_of(values, 1), 10);
  EXPECT_DOUBLE_EQ(quantile_of({5, 4, 9}, 0.5), 5);
  EXPECT_DOUBLE_EQ(quantile_of({8}, 0.75), 8);
  EXPECT_DOUBLE_EQ(quantile_of(values, 2), 10);
  EXPECT_TRUE(is_missing(quantile_of({}, 0.5)));
}

TEST(Warmup, is_a_tenth_within_bounds) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{{0, 0},  {1, 0},  {3, 0},    {4, 1},     {19, 1},
                                                                    {20, 2}, {50, 5}, {100, 10}, {10000, 10}};
  for (const auto& [steps, left_out] : expected) EXPECT_EQ(warmup_steps(steps, -1), left_out) << steps;
}

TEST(Warmup, asked_for_overrides_but_leaves_one_step) {
  EXPECT_EQ(warmup_steps(50, 0), 0);
  EXPECT_EQ(warmup_steps(50, 20), 20);
  EXPECT_EQ(warmup_steps(50, 50), 49);
  EXPECT_EQ(warmup_steps(2, 99), 1);
  EXPECT_EQ(warmup_steps(0, 5), 0);
}

TEST(Summary, figures_are_those_worked_out_by_hand) {
  // Warm-up by rule: 1 of 5. Steady dt 40, 20, 30, 50: quartiles 27.5, 35, 42.5.
  const Series series = series_of({{.step = 11, .loss = 5, .val_loss = 4.5, .dt_ms = 900, .tokens = 700},
                                   {.step = 12, .loss = 3, .dt_ms = 40, .tokens = 700},
                                   {.step = 13, .loss = 2, .val_loss = 2.5, .dt_ms = 20, .tokens = 700},
                                   {.step = 14, .loss = 2.25, .val_loss = 2.75, .dt_ms = 30, .tokens = 700},
                                   {.step = 15, .loss = 2.5, .dt_ms = 50, .tokens = 700}});
  const Summary summary = summarise(series, -1, 700);
  EXPECT_EQ(summary.steps, 5);
  EXPECT_EQ(summary.first_step, 11);
  EXPECT_EQ(summary.last_step, 15);
  EXPECT_EQ(summary.warmup_steps, 1);
  EXPECT_EQ(summary.loss_first, 5);
  EXPECT_EQ(summary.loss_last, 2.5);
  EXPECT_EQ(summary.loss_min, 2);
  EXPECT_EQ(summary.val_loss_last, 2.75);
  EXPECT_EQ(summary.val_loss_min, 2.5);
  EXPECT_DOUBLE_EQ(summary.dt_ms_p25, 27.5);
  EXPECT_DOUBLE_EQ(summary.dt_ms_median, 35);
  EXPECT_DOUBLE_EQ(summary.dt_ms_p75, 42.5);
  EXPECT_DOUBLE_EQ(summary.tokens_per_s, 20000);
  EXPECT_DOUBLE_EQ(summary.tokens_per_s_p25, 700000 / 42.5);
  EXPECT_DOUBLE_EQ(summary.tokens_per_s_p75, 700000 / 27.5);

  EXPECT_DOUBLE_EQ(summarise(series, 3, 700).dt_ms_median, 40);
  EXPECT_DOUBLE_EQ(summarise(series, 0, 700).dt_ms_median, 40);
  EXPECT_DOUBLE_EQ(summarise(series, -1, 0).tokens_per_s, 20000) << "the steps' own tokens";
}

TEST(Summary, no_steps_or_no_times) {
  const Summary none = summarise({}, -1, 100);
  EXPECT_EQ(none.steps, 0);
  EXPECT_TRUE(is_missing(none.loss_first));
  EXPECT_TRUE(is_missing(none.dt_ms_median));

  const Summary untimed = summarise(series_of({{.step = 1, .loss = 2}, {.step = 2, .loss = 1}}), -1, 100);
  EXPECT_EQ(untimed.loss_last, 1);
  EXPECT_TRUE(is_missing(untimed.dt_ms_median));
  EXPECT_TRUE(is_missing(untimed.tokens_per_s));
}

TEST(Summary, steps_without_a_usable_time_take_no_part) {
  const Series series = series_of({{.step = 1, .dt_ms = 10},
                                   {.step = 2, .dt_ms = 0},
                                   {.step = 3},
                                   {.step = 4, .dt_ms = infinity},
                                   {.step = 5, .dt_ms = nan},
                                   {.step = 6, .dt_ms = -4},
                                   {.step = 7, .dt_ms = 30}});
  EXPECT_DOUBLE_EQ(summarise(series, 0, 0).dt_ms_median, 20);
  EXPECT_TRUE(is_missing(summarise(series, 0, 0).tokens_per_s));
}

TEST(Summary, changing_tokens_have_no_one_throughput) {
  const Series series = series_of({{.step = 1, .dt_ms = 10, .tokens = 5}, {.step = 2, .dt_ms = 10, .tokens = 6}});
  EXPECT_TRUE(is_missing(summarise(series, 0, 0).tokens_per_s));
}

TEST(Summary, a_loss_that_is_not_finite_shows_but_is_no_minimum) {
  const Series series = series_of({{.step = 1},
                                   {.step = 2, .loss = infinity},
                                   {.step = 3, .loss = 4},
                                   {.step = 4, .loss = -infinity, .val_loss = nan},
                                   {.step = 5, .loss = nan},
                                   {.step = 6}});
  const Summary summary = summarise(series, -1, 0);
  EXPECT_EQ(summary.loss_first, infinity);
  EXPECT_TRUE(std::isnan(summary.loss_last) && !is_missing(summary.loss_last));
  EXPECT_EQ(summary.loss_min, 4);
  EXPECT_TRUE(std::isnan(summary.val_loss_last) && !is_missing(summary.val_loss_last));
  EXPECT_TRUE(is_missing(summary.val_loss_min));
}

}  // namespace
}  // namespace stepladder
