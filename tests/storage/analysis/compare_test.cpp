#include "storage/analysis/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "storage/analysis/target_search.h"
#include "tests/storage/not_finite.h"

namespace stepladder {
namespace {

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

TEST(LossParity, two_runs_that_end_without_a_loss_are_not_the_same) {
  const LossParity both = parity(losses({9, 8, nan, nan}), losses({9, 8, 7, nan}));
  EXPECT_EQ(both.verdict, LossVerdict::diverged);
  EXPECT_EQ(both.at_step, 4);
  EXPECT_EQ(parity(losses({9, nan, nan}), losses({9, nan, nan})).at_step, 2);
  EXPECT_EQ(parity(losses({9, 8, nan, nan}), losses({9, 8, 7, 6})).verdict, LossVerdict::not_comparable);
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

TEST(LossParity, diverged_where_a_finite_loss_unlearns) {
  const LossParity diverged = parity(base, losses({9, 8, 7, 12, 14, 15, 15, 16}));
  EXPECT_EQ(diverged.verdict, LossVerdict::diverged);
  EXPECT_EQ(diverged.at_step, 4);
  EXPECT_DOUBLE_EQ(diverged.max_gap, 14);
  // Worse, but still learning.
  EXPECT_EQ(parity(base, losses({9, 8.5, 8.4, 8.3, 8.2, 8.1, 8, 8})).verdict, LossVerdict::worse);
}

TEST(LossParity, repeats_make_the_band) {
  const Series first = losses({9, 8, 7, 6, 5, 4, 3, 2});
  const Series second = losses({9, 8, 7, 6, 5, 4, 3.1, 2.1});
  const Series third = losses({9, 8, 7, 6, 5, 4, 2.9, 1.9});
  EXPECT_EQ(loss_band({}), loss_tolerance_nats);
  const std::vector<const Series*> alike{&first, &first, &first};
  EXPECT_EQ(loss_band(alike), loss_tolerance_nats);
  // Ends 0, 0.1 and -0.1: standard deviation 0.1, t = 4.302653 with 2 degrees of freedom.
  const std::vector<const Series*> apart{&first, &second, &third};
  EXPECT_NEAR(loss_band(apart), 4.302652729749464 * 0.1 * std::sqrt(2), 1e-9);
  EXPECT_EQ(loss_parity(first, 100, losses({9, 8, 7, 6, 5, 4, 3.5, 2.5}), 100, loss_band(apart)).verdict,
            LossVerdict::same);
}

TEST(LossParity, other_data_or_vocabulary_is_not_comparable) {
  const auto run = [](const std::string& recipe) { return stepladder::Run{.tokens_per_step = 100, .recipe = recipe}; };
  const stepladder::Run text = run(R"({"data": "a.txt", "vocab": 256})");
  EXPECT_EQ(loss_parity(text, base, text, base).verdict, LossVerdict::same);
  EXPECT_EQ(loss_parity(text, base, run("{}"), base).verdict, LossVerdict::same);
  EXPECT_EQ(loss_parity(text, base, run(R"({"data": "b.txt"})"), base).verdict, LossVerdict::not_comparable);
  EXPECT_EQ(loss_parity(text, base, run(R"({"vocab": 50257})"), base).verdict, LossVerdict::not_comparable);
}

TEST(Target, is_reached_at_a_step_a_time_and_a_number_of_tokens) {
  Series series;
  for (int i = 1; i <= 20; ++i) series.append({.step = i, .loss = 10.0 - 0.25 * i, .dt_ms = 500});
  series.loss[4] = 1;  // one lucky step doesn't reach the target
  const TargetReached reached = reach(series, 100, 7.5);
  EXPECT_EQ(reached.step, 12);  // the first whose last five, now without the lucky one, have a median of 7.5 or less
  EXPECT_DOUBLE_EQ(reached.seconds, 6);
  EXPECT_DOUBLE_EQ(reached.tokens, 1200);
  EXPECT_EQ(reach(series, 100, 1.5).step, 0);
  series.val_loss[16] = 7.4;
  series.dt_ms[2] = missing;
  const TargetReached validated = reach(series, 0, 7.5);
  EXPECT_EQ(validated.step, 17);
  EXPECT_TRUE(is_missing(validated.seconds) && is_missing(validated.tokens));
}

TEST(TargetSearch, says_which_loss_it_looked_at) {
  Series series;
  for (int i = 1; i <= 20; ++i) series.append({.step = i, .loss = 10.0 - 0.25 * i, .dt_ms = 500});
  EXPECT_FALSE(reach(series, 100, 7.5).by_validation);
  EXPECT_FALSE(reach(series, 100, 0).by_validation) << "not reached";
  series.val_loss[16] = 7.4;
  EXPECT_TRUE(reach(series, 100, 7.5).by_validation);
  EXPECT_TRUE(reach(series, 100, 0).by_validation);
}

TEST(TargetOfRuns, is_the_median_of_those_that_reached_it) {
  const std::vector<TargetReached> runs{{.step = 100, .seconds = 10, .tokens = 1000},
                                        {.step = 300, .seconds = 30, .tokens = 3000, .by_validation = true},
                                        {.step = 200, .seconds = missing, .tokens = 2000},
                                        {}};
  const TargetOfRuns all = target_of(runs);
  EXPECT_EQ(all.runs, 4);
  EXPECT_EQ(all.reached, 3);
  EXPECT_EQ(all.by_validation, 1);
  EXPECT_EQ(all.steps, 200);
  EXPECT_EQ(all.seconds, 20) << "of the two whose time is known";
  EXPECT_EQ(all.tokens, 2000);
  EXPECT_EQ(target_of({}).reached, 0);
  EXPECT_TRUE(is_missing(target_of(std::vector<TargetReached>{{}}).steps));
}

TEST(TargetSearch, finds_the_same_however_the_run_is_cut) {
  Series whole;
  for (int i = 1; i <= 40; ++i) whole.append({.step = i, .loss = 10.0 - 0.25 * i, .dt_ms = 7.0 * i, .tokens = 10 * i});
  const TargetReached at_once = reach(whole, 0, 4);
  for (const int cut : {1, 2, 3, 7, 40}) {
    TargetSearch search(0, 4, false);
    for (int first = 1; first <= 40; first += cut) {
      Series piece;
      for (int i = first; i < first + cut && i <= 40; ++i)
        piece.append({.step = i, .loss = 10.0 - 0.25 * i, .dt_ms = 7.0 * i, .tokens = 10 * i});
      search.add(piece);
    }
    ASSERT_TRUE(search.found());
    EXPECT_EQ(search.reached().step, at_once.step);
    EXPECT_EQ(search.reached().seconds, at_once.seconds);
    EXPECT_EQ(search.reached().tokens, at_once.tokens);
  }
}

TEST(Verdict, weighs_interval_and_noise_floor) {
  EXPECT_EQ(verdict_of(1.02, {1.006, 1.03}), Verdict::faster);
  EXPECT_EQ(verdict_of(1.02, {1.004, 1.03}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of(0.97, {0.96, 0.99}), Verdict::slower);
  EXPECT_EQ(verdict_of(1.001, {0.995, 1.006}), Verdict::same);
  EXPECT_EQ(verdict_of(1.004, {1.002, 1.006}), Verdict::same) << "certain, and below the floor";
  EXPECT_EQ(verdict_of(1.05, {0.97, 1.12}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of(1.008, {1.002, 1.014}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of(1.008, {1.003, 1.014}, 0.005), Verdict::faster);
  EXPECT_EQ(verdict_of(1.5, {}), Verdict::cannot_tell);
  EXPECT_EQ(verdict_of(missing, {1, 2}), Verdict::cannot_tell);
  EXPECT_EQ(to_string(Verdict::cannot_tell), "cannot-tell");
}

TEST(Verdict, repeats_that_lie_apart_widen_the_interval) {
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) times.push_back(100 + i % 7);
  const MedianSample steps = sample_median(times);
  const SpeedUp alone = judge_speedup(1.05, {.steps = steps}, {.steps = steps});
  EXPECT_EQ(alone.verdict, Verdict::faster);
  const Sample slow{.steps = steps, .repeats = {100, 105, 110}, .averaged = 3};
  const Sample fast{.steps = steps, .repeats = {95, 100, 105}, .averaged = 3};
  const SpeedUp repeated = judge_speedup(1.05, slow, fast);
  EXPECT_EQ(repeated.verdict, Verdict::cannot_tell);
  EXPECT_LT(repeated.ci95.low, 0.95);
  // The spread alone gives an interval if the steps don't.
  EXPECT_TRUE(judge_speedup(2, {.repeats = {100, 101}}, {.repeats = {50, 50.5}}).ci95.known());
  EXPECT_FALSE(judge_speedup(2, {.repeats = {100}}, {.repeats = {50}}).ci95.known());
}

TEST(OwnInterval, is_that_of_the_median_and_widened_by_repeats) {
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) times.push_back(100 + i % 7);
  const MedianSample steps = sample_median(times);
  const Interval alone = own_interval({.steps = steps});
  EXPECT_DOUBLE_EQ(alone.low * steps.median, median_interval(steps).low);
  EXPECT_LT(alone.low, 1);
  EXPECT_GT(alone.high, 1);
  // Three runs 10 % apart: Student's t with two degrees of freedom is 4.3, so the interval is at least a quarter wide.
  const Interval repeated = own_interval({.steps = steps, .repeats = {90, 100, 110}, .averaged = 3});
  EXPECT_LT(repeated.low, 0.8);
  EXPECT_GT(repeated.high, 1.25);
  EXPECT_FALSE(own_interval({.repeats = {100}}).known());
  EXPECT_TRUE(own_interval({.repeats = {100, 101}, .averaged = 2}).known());
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

TEST(BreakEven, is_setup_over_what_a_step_saves) {
  EXPECT_EQ(break_even_steps(30'000, 120, 100), 1500);
  EXPECT_EQ(break_even_steps(30'001, 120, 100), 1501);
  EXPECT_EQ(break_even_steps(0, 120, 100), 0);
  for (const auto& [setup, before, after] : std::vector<std::array<double, 3>>{{30'000, 100, 100},
                                                                               {30'000, 100, 120},
                                                                               {missing, 120, 100},
                                                                               {1, missing, 100},
                                                                               {1, 100, missing},
                                                                               {-1, 2, 1}})
    EXPECT_TRUE(is_missing(break_even_steps(setup, before, after))) << setup << " " << before << " " << after;
}

TEST(JudgeSpeedup, an_interval_without_an_end_in_sight_is_not_told) {
  Sample before, after;
  before.steps = {.median = 1, .steps = 10, .block = 1, .log_deviations = std::vector<double>(99, 0.0), .log_error = 0};
  after.steps = before.steps;
  for (std::size_t i = 0; i < after.steps.log_deviations.size(); ++i)
    after.steps.log_deviations[i] = (i % 2 ? 1 : -1) * 6.0;  // e^12 from end to end
  const SpeedUp judged = judge_speedup(0.27, before, after);
  EXPECT_FALSE(judged.ci95.known());
  EXPECT_EQ(judged.verdict, Verdict::cannot_tell);
}

}  // namespace
}  // namespace stepladder
