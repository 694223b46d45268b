#include "storage/analysis/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "storage/analysis/target_search.h"

namespace stepladder {
namespace {

TEST(Target, is_reached_at_a_step_a_time_and_a_number_of_tokens) {
  Series series;
  for (int i = 1; i <= 20; ++i) series.append({.step = i, .loss = 10.0 - 0.25 * i, .dt_ms = 500});
  series.loss[4] = 1;  // one lucky step doesn't reach the target
  const TargetReached reached = reach(stepladder::Run{.tokens_per_step = 100}, series, 7.5);
  EXPECT_EQ(reached.step, 12);  // the first whose last five, now without the lucky one, have a median of 7.5 or less
  EXPECT_DOUBLE_EQ(reached.seconds, 6);
  EXPECT_DOUBLE_EQ(reached.tokens, 1200);
  EXPECT_EQ(reach(stepladder::Run{.tokens_per_step = 100}, series, 1.5).step, 0);
  series.val_loss[16] = 7.4;
  series.dt_ms[2] = missing;
  const TargetReached validated = reach(stepladder::Run{.tokens_per_step = 0}, series, 7.5);
  EXPECT_EQ(validated.step, 17);
  EXPECT_DOUBLE_EQ(validated.seconds, 8.5) << "a step without a time counts as the one before it";
  EXPECT_TRUE(is_missing(validated.tokens));
}

TEST(Target, is_not_reached_by_one_lucky_evaluation) {
  const auto reached = [](std::vector<double> losses) {
    Series series;
    for (const double loss : losses)
      series.append({.step = 10 * (std::ssize(series.step) + 1), .val_loss = loss, .dt_ms = 100});
    return reach(stepladder::Run{.tokens_per_step = 100}, series, 3.28);
  };
  EXPECT_EQ(reached({3.5, 3.27, 3.4, 3.28, 3.2, 3.4}).step, 40) << "the first of two in a row";
  EXPECT_FALSE(reached({3.5, 3.27, 3.4, 3.28, 3.2, 3.4}).once);
  EXPECT_EQ(reached({3.5, 3.27, 3.4}).step, 0);
  EXPECT_EQ(reached({3.5, 3.27, std::nan(""), 3.4}).step, 0);
  EXPECT_EQ(reached({3.5, 3.4, 3.27}).step, 30);
  EXPECT_TRUE(reached({3.5, 3.4, 3.27}).once);
  EXPECT_EQ(target_of(std::vector{reached({3.27}), reached({3.27, 3.2})}).once, 1);
}

TEST(TargetSearch, says_which_loss_it_looked_at) {
  Series series;
  for (int i = 1; i <= 20; ++i) series.append({.step = i, .loss = 10.0 - 0.25 * i, .dt_ms = 500});
  EXPECT_FALSE(reach(stepladder::Run{.tokens_per_step = 100}, series, 7.5).by_validation);
  EXPECT_FALSE(reach(stepladder::Run{.tokens_per_step = 100}, series, 0).by_validation) << "not reached";
  series.val_loss[16] = 7.4;
  EXPECT_TRUE(reach(stepladder::Run{.tokens_per_step = 100}, series, 7.5).by_validation);
  EXPECT_TRUE(reach(stepladder::Run{.tokens_per_step = 100}, series, 0).by_validation);
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
  const TargetReached at_once = reach(stepladder::Run{.tokens_per_step = 0}, whole, 4);
  for (const int cut : {1, 2, 3, 7, 40}) {
    TargetSearch search(stepladder::Run{}, 4, false);
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

// Runs whose steps took `ms` for certain, with repeats at these figures.
Sample certain(double ms, std::vector<double> repeats) {
  Sample sample{.steps = {.median = ms, .steps = 100, .block = 1, .log_deviations = std::vector<double>(99, 0.0)}};
  sample.averaged = repeats.size();
  sample.repeats = std::move(repeats);
  return sample;
}

TEST(Verdict, one_run_a_side_has_the_spread_that_is_known) {
  // Deviation 0.0012 with four degrees of freedom: t = 2.776.
  const SpeedUpRules rules{.known = {.squares = 4 * 0.0012 * 0.0012, .freedom = 4, .from = SpreadFrom::prior}};
  const double half = 2.7764451 * std::sqrt(2.0) * 0.0012;
  const SpeedUp alone = judge_speedup(1.004, certain(100, {100}), certain(99.6, {99.6}), rules);
  EXPECT_EQ(alone.spread_from, SpreadFrom::prior);
  EXPECT_NEAR(std::log(alone.ci95.high / 1.004), half, 1e-7);
  EXPECT_EQ(alone.verdict, Verdict::same);
  EXPECT_EQ(alone.runs, 1u);
  const SpeedUp near = judge_speedup(1.008, certain(100, {100}), certain(99.2, {99.2}), rules);
  EXPECT_EQ(near.verdict, Verdict::cannot_tell);
  EXPECT_GE(near.needed_runs, 1);
  const SpeedUp repeated = judge_speedup(1.004, certain(100, {100, 100.2}), certain(99.6, {99.6, 99.7}), rules);
  EXPECT_EQ(repeated.spread_from, SpreadFrom::repeats);
  const SpeedUp copies = judge_speedup(1.004, certain(100, {100, 100}), certain(99.6, {99.6, 99.6}), rules);
  EXPECT_EQ(copies.spread_from, SpreadFrom::prior) << "equal figures are copies, not repeats";
  EXPECT_LT(copies.ci95.low, 1.004);
  const SpeedUp far_apart = judge_speedup(2.4, certain(100, {100}), certain(41, {20, 63}), rules);
  EXPECT_EQ(far_apart.verdict, Verdict::cannot_tell) << "its own repeats deny what is known";
  EXPECT_FALSE(far_apart.ci95.high < 4);
}

// Of ladders whose true gain is the smallest one that is promised, 95 % must show it as faster.
TEST(Verdict, the_smallest_gain_is_found_as_often_as_promised) {
  for (const std::size_t runs : {3, 6}) {
    const RunSpread known{.squares = 8 * 0.004 * 0.004, .freedom = 8, .from = SpreadFrom::project};
    const double gain = smallest_gain(known, runs);
    std::mt19937_64 random(7);
    std::normal_distribution<double> noise(0, 0.004);
    int found = 0;
    constexpr int ladders = 2000;
    for (int i = 0; i < ladders; ++i) {
      std::vector<double> base, run;
      for (std::size_t k = 0; k < runs; ++k) {
        base.push_back(100 * std::exp(noise(random)));
        run.push_back(100 / (1 + gain) * std::exp(noise(random)));
      }
      const double factor = median_of(base) / median_of(run);
      found += judge_speedup(factor, certain(100, base), certain(100, run)).verdict == Verdict::faster;
    }
    EXPECT_GE(found, 0.92 * ladders) << runs;
    EXPECT_LE(found, 0.99 * ladders) << runs;
  }
  EXPECT_TRUE(is_missing(smallest_gain({}, 3)));
}

TEST(Verdict, more_runs_never_see_less) {
  for (const double freedom : {1, 2, 3, 4, 8, 40}) {
    const RunSpread known{.squares = freedom * 0.03 * 0.03, .freedom = freedom, .from = SpreadFrom::prior};
    for (std::size_t runs = 1; runs < 12; ++runs)
      EXPECT_GE(smallest_gain(known, runs), smallest_gain(known, runs + 1)) << runs << " runs, " << freedom;
  }
}

TEST(Verdict, rounding_widens_an_interval_whatever_the_number_of_runs) {
  Sample base = certain(100, {100, 100.1, 99.9});
  base.steps.resolution = 0.01;
  const Interval ci95 = judge_speedup(1.02, base, certain(98, {98, 98.1, 97.9})).ci95;
  const Interval exact = judge_speedup(1.02, certain(100, {100, 100.1, 99.9}), certain(98, {98, 98.1, 97.9})).ci95;
  EXPECT_NEAR(std::log(exact.low / ci95.low), 0.01, 1e-12);
  EXPECT_NEAR(std::log(ci95.high / exact.high), 0.01, 1e-12);
}

TEST(Looks, share_the_error) {
  for (const Looks& looks : {Looks(6), Looks(40, 5), Looks(50)}) {
    double sum = 0;
    for (const std::size_t runs : looks.runs) sum += looks.error_at(runs);
    EXPECT_NEAR(sum, 0.05, 1e-12);
    EXPECT_LT(looks.error_at(looks.runs.front()), looks.error_at(looks.runs.back()));
  }
  EXPECT_EQ(Looks(6).runs, (std::vector<std::size_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(Looks(40, 5).runs, (std::vector<std::size_t>{5, 7, 10, 14, 20, 28, 40}));
  EXPECT_EQ(Looks(3, 9).runs, (std::vector<std::size_t>{3})) << "as asked for";
  EXPECT_EQ(Looks().error_at(3), 0.05);
  EXPECT_TRUE(Looks().is_at(3));
  const Looks looks(50);
  EXPECT_TRUE(looks.is_at(28));
  EXPECT_FALSE(looks.is_at(29)) << "nobody stops there";
  EXPECT_EQ(looks.error_at(29), looks.error_at(28));
  EXPECT_EQ(looks.error_at(1), looks.error_at(2));
}

TEST(Verdict, a_ladder_holds_together) {
  // Each rung alone is barely faster; of ten such rungs none can be told.
  const SpeedUpRules rules{.known = {.squares = 10 * 0.004 * 0.004, .freedom = 10, .from = SpreadFrom::prior}};
  std::vector<SpeedUp> rungs(10, judge_speedup(1.019, certain(101.9, {101.9}), certain(100, {100}), rules));
  rungs.push_back(judge_speedup(1.2, certain(120, {120}), certain(100, {100}), rules));
  ASSERT_EQ(rungs[0].verdict, Verdict::faster);
  std::vector<SpeedUp*> family;
  for (SpeedUp& rung : rungs) family.push_back(&rung);
  hold_together(std::span(family).first(1));
  EXPECT_EQ(rungs[0].verdict, Verdict::faster) << "alone";
  hold_together(family);
  EXPECT_EQ(rungs[0].verdict, Verdict::cannot_tell);
  EXPECT_EQ(rungs[0].compared, 11u);
  EXPECT_EQ(rungs.back().verdict, Verdict::faster) << "far beyond what eleven looks explain";
}

TEST(Verdict, of_a_part_of_a_family_is_that_of_the_whole_or_open) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> size(0, 7);
  int open = 0, held = 0, withdrawn = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<SpeedUp> whole;
    const std::size_t count = 2 + random() % 30;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_real = random() % 4 != 0;
      whole.push_back({.verdict = is_real ? Verdict::faster : Verdict::same, .p = std::exp(-size(random))});
      if (random() % 10 == 0) whole.back().p = missing;
    }
    std::vector<SpeedUp> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(1 + random() % count));
    const auto hold = [](std::vector<SpeedUp>& family, std::size_t unjudged) {
      std::vector<SpeedUp*> pointers;
      for (SpeedUp& each : family) pointers.push_back(&each);
      hold_together(pointers, unjudged);
    };
    hold(part, whole.size() - part.size());
    hold(whole, 0);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i].is_open) {
        EXPECT_EQ(part[i].verdict, Verdict::cannot_tell);
        ++open;
        continue;
      }
      ASSERT_EQ(part[i].verdict, whole[i].verdict) << "round " << round << ", " << i << " of " << part.size();
      ++(part[i].verdict == Verdict::faster ? held : withdrawn);
    }
  }
  EXPECT_GT(open, 100);
  EXPECT_GT(held, 100);
  EXPECT_GT(withdrawn, 100);
}

TEST(Verdict, is_never_open_where_all_are_judged) {
  std::vector<SpeedUp> whole(12, {.verdict = Verdict::faster, .p = 0.03});
  std::vector<SpeedUp*> family;
  for (SpeedUp& each : whole) family.push_back(&each);
  hold_together(family);
  for (const SpeedUp& each : whole) EXPECT_FALSE(each.is_open);
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
