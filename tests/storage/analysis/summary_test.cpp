#include "storage/analysis/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/storage/not_finite.h"

namespace stepladder {
namespace {

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

TEST(Summary, the_wall_clock_leaves_evaluations_out) {
  const auto wall_ms = [](int period, bool before_step) {
    Series series;
    double at = 1'000'000.5;
    for (int step = 1; step <= 90; ++step) {
      const bool evaluates = step % period == 0;
      at += 0.5 + (evaluates && before_step ? 5 : 0);
      series.append({.step = step, .val_loss = evaluates ? 3 : missing, .dt_ms = 500, .at = at});
      if (evaluates && !before_step) at += 5;
    }
    return summarise(series, -1, 0).wall_ms_median;
  };
  EXPECT_NEAR(wall_ms(100, false), 500, 1e-3);
  EXPECT_NEAR(wall_ms(5, false), 500, 1e-3);
  EXPECT_NEAR(wall_ms(5, true), 500, 1e-3);
  EXPECT_NEAR(wall_ms(1, true), 5500, 1e-3) << "each step has one";
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

// A long training: slow at first, drifting, validated every 500th step, with pauses and steps without a time.
StepRecord long_training(std::int64_t i) {
  const double noise = static_cast<double>(i * 2654435761 % 1009) / 1009 - 0.5;
  double dt = 40 * (1 + 0.02 * noise) * (1 + 5e-7 * static_cast<double>(i)) * (i < 300 ? 1.5 : 1);
  if (i % 500 == 499) dt += 25;
  if (i % 9973 == 5000) dt = 4000;
  return {.step = i + 1,
          .loss = i == 1234 ? nan : 3 - 1e-5 * static_cast<double>(i % 50'000),
          .val_loss = i % 500 == 499 ? 2.5 : missing,
          .dt_ms = i % 313 == 7 ? missing : dt,
          .tokens = 1024};
}

Summary summary_of(std::int64_t steps, std::size_t exact_steps, std::int64_t warmup = -1) {
  SummaryBuilder builder(warmup, 0, exact_steps);
  for (std::int64_t i = 0; i < steps; ++i) builder.add(long_training(i));
  return builder.finish();
}

TEST(BoundedSummary, is_the_exact_one_up_to_the_limit_and_close_to_it_beyond) {
  constexpr std::size_t limit = 20'000;
  for (const std::int64_t steps :
       {std::int64_t{limit} - 1, std::int64_t{limit}, std::int64_t{limit} + 1, std::int64_t{limit} * 20}) {
    for (const std::int64_t warmup : {-1, 0, 70'000}) {
      SCOPED_TRACE(std::to_string(steps) + " steps, warm-up " + std::to_string(warmup));
      const Summary exact = summary_of(steps, 1'000'000, warmup);
      const Summary bounded = summary_of(steps, limit, warmup);
      const bool same = steps <= static_cast<std::int64_t>(limit);
      const auto near = [&](double a, double b, double share) {
        if (same) {
          EXPECT_EQ(a, b);
        } else {
          EXPECT_NEAR(a, b, share * std::abs(b));
        }
      };
      EXPECT_EQ(bounded.steps, exact.steps);
      EXPECT_EQ(bounded.first_step, exact.first_step);
      EXPECT_EQ(bounded.last_step, exact.last_step);
      EXPECT_EQ(bounded.warmup_steps, exact.warmup_steps);
      EXPECT_EQ(bounded.loss_first, exact.loss_first);
      EXPECT_EQ(bounded.loss_last, exact.loss_last);
      EXPECT_EQ(bounded.loss_min, exact.loss_min);
      EXPECT_EQ(bounded.val_loss_last, exact.val_loss_last);
      EXPECT_EQ(bounded.untimed_steps, exact.untimed_steps);
      EXPECT_EQ(bounded.nonfinite_steps, exact.nonfinite_steps);
      EXPECT_EQ(bounded.first_nonfinite_step, exact.first_nonfinite_step);
      constexpr double resolution = 1.0 / 16'384;
      near(bounded.dt_ms_p5, exact.dt_ms_p5, resolution);
      near(bounded.dt_ms_p25, exact.dt_ms_p25, resolution);
      near(bounded.dt_ms_median, exact.dt_ms_median, resolution);
      near(bounded.dt_ms_p75, exact.dt_ms_p75, resolution);
      near(bounded.dt_ms_p95, exact.dt_ms_p95, resolution);
      near(bounded.tokens_per_s, exact.tokens_per_s, resolution);
      near(bounded.drift, exact.drift, 0.02);
      EXPECT_EQ(bounded.spikes, exact.spikes) << "far from the limit between slow and very slow";
      EXPECT_EQ(bounded.pauses, exact.pauses);
      if (warmup < 0) {  // else the slow start is one long spike in the head
        EXPECT_EQ(bounded.spike_period, exact.spike_period);
        EXPECT_EQ(bounded.spike_period, 500);
      }
    }
  }
}

TEST(BoundedSummary, tokens_count_where_all_steady_ones_are_alike) {
  const auto tokens_per_s = [](std::int64_t changes_at) {
    SummaryBuilder builder(10, 0, 100);
    for (std::int64_t i = 0; i < 500; ++i)
      builder.add({.step = i + 1, .dt_ms = 10, .tokens = i < changes_at ? 50 : 100});
    return builder.finish().tokens_per_s;
  };
  EXPECT_DOUBLE_EQ(tokens_per_s(0), 10'000);
  EXPECT_DOUBLE_EQ(tokens_per_s(10), 10'000);
  EXPECT_TRUE(is_missing(tokens_per_s(11)));
}

TEST(FineHistogram, quantiles_and_ends) {
  FineHistogram histogram;
  EXPECT_TRUE(is_missing(histogram.quantile(0.5)));
  for (const double value : {7.0, 1.0, 3.0, 10.0}) histogram.add(value);
  EXPECT_DOUBLE_EQ(histogram.quantile(0.25), 2.5);
  EXPECT_DOUBLE_EQ(histogram.quantile(1), 10);
  EXPECT_EQ(histogram.above(6.5), 2);
  for (const double value : {1e-300, 1e300}) histogram.add(value);
  EXPECT_DOUBLE_EQ(histogram.quantile(0), 1e-300);
  EXPECT_DOUBLE_EQ(histogram.quantile(1), 1e300);
  EXPECT_EQ(histogram.count(), 6);
}

}  // namespace
}  // namespace stepladder
