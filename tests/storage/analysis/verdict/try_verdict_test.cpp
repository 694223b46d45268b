// The rules of `stepladder try` on simulated series: false keeps, power, cost, and noise that isn't normal.
#include "storage/analysis/verdict/try_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>

namespace stepladder {
namespace {

std::mt19937_64 random_source{20};

double mean_of(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return mean;
}

RunSpread spread_around_mean(const std::vector<double>& values) {
  RunSpread spread;
  const double mean = mean_of(values);
  for (const double value : values) spread.squares += (value - mean) * (value - mean);
  spread.freedom = static_cast<double>(values.size()) - 1;
  return spread;
}

struct Outcome {
  int true_keeps = 0, false_keeps = 0;
  double runs_of_each = 0;
};

// A series of changes with these effects, in standard deviations of a run, of which six were made beforehand.
Outcome simulate(const std::vector<double>& effects, const std::function<double()>& noise,
                 FalseKeeps rule = FalseKeeps::few) {
  double level = 0, runs = 0;
  Outcome outcome;
  std::vector<double> pool, recent;
  RunSpread earlier;
  for (int i = 0; i < 6; ++i) pool.push_back(noise());
  recent = pool;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    TryRuns tried{.kept = pool, .recent = recent, .noise = pooled(earlier, spread_around_mean(pool))};
    std::vector<std::pair<double, bool>> in_order;  // whether it is of the change
    const auto kept_so_far = static_cast<std::size_t>(outcome.true_keeps + outcome.false_keeps);
    const double threshold = needed_e_value(i + 1, kept_so_far, rule);
    TryOpinion opinion;
    for (; (opinion = judge_try(tried, threshold)).step != TryStep::over; ++runs) {
      const bool is_change = opinion.step == TryStep::run_changed;
      in_order.emplace_back(level + (is_change ? effects[i] : 0) + noise(), is_change);
      (is_change ? tried.changed : tried.beside).push_back(in_order.back().first);
    }
    pool.insert(pool.end(), tried.beside.begin(), tried.beside.end());
    const bool is_kept = opinion.end == TryEnd::kept;
    const double gain = is_kept ? mean_of(tried.changed) - mean_of(tried.beside) : 0;
    for (double& value : recent) value += gain;
    for (const auto& [value, is_change] : in_order)
      if (!is_change || opinion.end != TryEnd::worse) recent.push_back(value + (is_change ? 0 : gain));
    if (!is_kept) continue;
    ++(effects[i] > 0 ? outcome.true_keeps : outcome.false_keeps);
    earlier = pooled(earlier, spread_around_mean(pool));
    pool = tried.changed;
    level += effects[i];
  }
  outcome.runs_of_each = runs / static_cast<double>(effects.size());
  return outcome;
}

double normal_noise() {
  return std::normal_distribution<double>()(random_source);
}

// One run in fifty is far slower than the others.
double disturbed_noise() {
  return normal_noise() - (std::uniform_real_distribution<double>()(random_source) < 0.02 ? 15 : 0);
}

double heavy_tailed_noise() {
  return std::student_t_distribution<double>(3)(random_source) / std::sqrt(3);
}

// The mean of the e-value at a fixed number of runs, without a gain.
TEST(TryVerdict, AnEValueHasAMeanOfAtMostOneWithoutAGain) {
  double sum = 0;
  constexpr int samples = 20'000;
  for (int i = 0; i < samples; ++i) {
    std::vector<double> before;
    for (int j = 0; j < 6; ++j) before.push_back(normal_noise());
    GainEvidence evidence{.gain = 0, .variance = 0.5, .noise = spread_around_mean(before)};
    for (int j = 0; j < 4; ++j) evidence.gain += (normal_noise() - normal_noise()) / 4;
    sum += std::min(e_value(evidence), 1e4);
  }
  EXPECT_LT(sum / samples, 1.15);
  EXPECT_GT(sum / samples, 0.7);
}

TEST(TryVerdict, WithoutAGainHardlyASeriesKeepsAnything) {
  for (const auto& noise : {&normal_noise, &disturbed_noise, &heavy_tailed_noise})
    for (const std::size_t length : {5u, 20u, 100u}) {
      constexpr int series = 120;
      int with_false_keeps = 0, most = 0;
      double runs = 0;
      for (int i = 0; i < series; ++i) {
        const Outcome outcome = simulate(std::vector<double>(length, 0.0), noise);
        with_false_keeps += outcome.false_keeps > 0;
        most = std::max(most, outcome.false_keeps);
        runs += outcome.runs_of_each / series;
      }
      EXPECT_LE(with_false_keeps, series / 20) << length;
      EXPECT_LE(most, 2) << length;
      EXPECT_LT(runs, 2.5) << length;
    }
}

TEST(TryVerdict, GainsAmongManyChangesAreFound) {
  for (const auto& [effect, least] : {std::pair{3.0, 0.65}, {5.0, 0.93}, {10.0, 0.98}}) {
    constexpr int series = 40;
    double found = 0, false_share = 0, runs = 0;
    for (int i = 0; i < series; ++i) {
      std::vector<double> effects(100, 0.0);
      for (int gains = 0; gains < 8;) {
        double& place = effects[random_source() % 100];
        gains += place == 0;
        place = effect;
      }
      const Outcome outcome = simulate(effects, normal_noise);
      found += outcome.true_keeps / 8.0 / series;
      false_share += outcome.false_keeps / std::max(1.0, 1.0 * (outcome.true_keeps + outcome.false_keeps)) / series;
      runs += outcome.runs_of_each / series;
    }
    EXPECT_GT(found, least) << effect;
    EXPECT_LT(false_share, 0.05) << effect;
    EXPECT_LT(runs, 2.5) << effect;
  }
}

// Machines drift by more, over some ten runs, than two runs beside each other differ.
TEST(TryVerdict, ADriftThatIsLargerThanTheNoiseHidesFewGains) {
  constexpr int series = 60;
  double found = 0, false_keeps = 0, runs = 0;
  for (int i = 0; i < series; ++i) {
    std::vector<double> effects(100, 0.0);
    for (std::size_t gain = 6; gain < 100; gain += 12) effects[gain] = 4;
    double drift = 4 * normal_noise();
    const Outcome outcome = simulate(effects, [&] {
      const double stays = std::exp(-1.0 / 40);
      drift = stays * drift + 4 * std::sqrt(1 - stays * stays) * normal_noise();
      return drift + normal_noise();
    });
    found += outcome.true_keeps / 8.0 / series;
    false_keeps += outcome.false_keeps;
    runs += outcome.runs_of_each / series;
  }
  EXPECT_GT(found, 0.55) << "by the means of the states it was a quarter";
  EXPECT_LE(false_keeps, 2);
  EXPECT_LT(runs, 2.5);
}

// One change in five is a gain: the dearest of the usual series.
TEST(TryVerdict, SeriesWithManyGainsCostTwoAndAHalfRunsAChange) {
  constexpr int series = 200;
  for (const auto& [effect, least] : {std::pair{4.0, 0.9}, {10.0, 0.99}}) {
    double found = 0, false_share = 0, runs = 0;
    for (int i = 0; i < series; ++i) {
      std::vector<double> effects(20, 0.0);
      std::fill_n(effects.begin(), 4, effect);
      std::shuffle(effects.begin(), effects.end(), random_source);
      const Outcome outcome = simulate(effects, normal_noise);
      found += outcome.true_keeps / 4.0 / series;
      false_share += outcome.false_keeps / std::max(1.0, 1.0 * (outcome.true_keeps + outcome.false_keeps)) / series;
      runs += outcome.runs_of_each / series;
    }
    EXPECT_GT(found, least) << effect;
    EXPECT_LT(false_share, 0.02) << effect;
    EXPECT_LT(runs, 2.6) << effect;
  }
}

// The machine is faster by far since the kept state's runs: all changes look like gains, and turns soon show that none
// is.
TEST(TryVerdict, ADriftOfTheMachineCostsFewRuns) {
  constexpr int changes = 200;
  double runs = 0, kept = 0;
  for (int i = 0; i < changes; ++i) {
    TryRuns tried;
    for (int j = 0; j < 6; ++j) tried.kept.push_back(normal_noise());
    tried.noise = spread_around_mean(tried.kept);
    TryOpinion opinion;
    for (; (opinion = judge_try(tried, 1000)).step != TryStep::over; ++runs)
      (opinion.step == TryStep::run_changed ? tried.changed : tried.beside).push_back(6 + normal_noise());
    kept += opinion.end == TryEnd::kept;
  }
  EXPECT_LE(kept, 2);
  EXPECT_LT(runs / changes, 6);
}

TEST(TryVerdict, ALargeGainTakesTwoTurnsAndAHarmTwoRuns) {
  TryRuns runs{.kept = {0, 0.5, -0.5, 0.2, -0.2, 0.1}};
  runs.noise = spread_around_mean(runs.kept);
  const double threshold = needed_e_value(1, 0, FalseKeeps::few);
  EXPECT_EQ(judge_try(runs, threshold).step, TryStep::run_changed);
  runs.changed = {20};
  EXPECT_EQ(judge_try(runs, threshold).step, TryStep::run_kept);
  runs.beside = {0.1};
  EXPECT_EQ(judge_try(runs, threshold).step, TryStep::run_kept) << "A B, B A";
  runs.beside.push_back(-0.2);
  EXPECT_EQ(judge_try(runs, threshold).step, TryStep::run_changed);
  runs.changed.push_back(20.3);
  const TryOpinion kept = judge_try(runs, threshold);
  EXPECT_EQ(kept.end, TryEnd::kept);
  EXPECT_TRUE(kept.ci95.low <= kept.gain && kept.gain <= kept.ci95.high);
  EXPECT_NEAR(kept.gain, 20.2, 0.1) << "a clear gain isn't shrunk";
  runs.changed = {-20};
  runs.beside.clear();
  EXPECT_EQ(judge_try(runs, threshold).step, TryStep::run_kept) << "the machine may have drifted";
  runs.beside = {0};
  EXPECT_EQ(judge_try(runs, threshold).end, TryEnd::worse);
  runs.beside = {-20.5};
  EXPECT_NE(judge_try(runs, threshold).end, TryEnd::worse) << "it has";
}

TEST(TryVerdict, OneDisturbedRunMakesNoGain) {
  TryRuns runs{.kept = {0, 0.5, -0.5, 0.2, -0.2, 0.1}, .noise = {}, .changed = {0.6}, .beside = {-30}};
  runs.noise = spread_around_mean(runs.kept);
  const double threshold = needed_e_value(1, 0, FalseKeeps::few);
  TryOpinion opinion;
  while ((opinion = judge_try(runs, threshold)).step != TryStep::over)
    (opinion.step == TryStep::run_changed ? runs.changed : runs.beside).push_back(0.3);
  EXPECT_NE(opinion.end, TryEnd::kept);
}

TEST(TryVerdict, EqualRepeatsAreNoEvidenceOfLowNoise) {
  const TryRuns runs{.kept = {1, 1, 1, 1}, .noise = {.squares = 0, .freedom = 3}, .changed = {2}, .beside = {}};
  EXPECT_EQ(judge_try(runs, 100).end, TryEnd::equal_repeats);
}

TEST(TryVerdict, TheIntervalHoldsWheneverOneLooks) {
  constexpr int series = 400;
  int missed = 0;
  for (int i = 0; i < series; ++i) {
    TryRuns runs;
    for (int j = 0; j < 6; ++j) runs.kept.push_back(normal_noise());
    double sum = 0;
    RunSpread noise = spread_around_mean(runs.kept);
    bool holds = true;
    for (int n = 1; n <= 20; ++n) {
      sum += normal_noise() - normal_noise();
      const Interval interval = anytime_interval({.gain = sum / n, .variance = 2.0 / n, .noise = noise});
      holds &= !interval.known() || (interval.low <= 0 && interval.high >= 0);
    }
    missed += !holds;
  }
  EXPECT_LT(missed, series / 15);
}

// One look has 1 % of the interval's error, half of it on each side. Few runs foretell the next one badly.
TEST(TryVerdict, TheIntervalOfADroppedChangeKeepsItsShareOfTheError) {
  constexpr int changes = 40'000;
  int missed = 0;
  for (int i = 0; i < changes; ++i) {
    TryRuns tried{.kept = {}, .recent = {}, .noise = {.squares = 5, .freedom = 5}, .changed = {1 + normal_noise()}};
    for (int j = 0; j < 13; ++j) tried.recent.push_back(normal_noise());
    tried.kept = tried.recent;
    const TryOpinion opinion = judge_try(tried, 200);
    missed += opinion.step == TryStep::over && opinion.ci95.high < 1;
  }
  EXPECT_LT(missed, 0.006 * changes);
}

// Runs far apart drift, but the turns that would settle a gain don't.
TEST(TryVerdict, ADriftAsksForNoMoreTurns) {
  TryRuns tried{.kept = {}, .recent = {}, .noise = {.squares = 40, .freedom = 40}, .changed = {}};
  for (int i = 0; i < 60; ++i) tried.recent.push_back(std::sin(i / 12.0) * 6 + 0.1 * (i % 2));
  tried.kept = tried.recent;
  tried.changed = {tried.recent.back() + 1};
  const TryOpinion opinion = judge_try(tried, 200);
  ASSERT_EQ(opinion.end, TryEnd::no_sign);
  EXPECT_GT(opinion.needed_runs, 0);
  EXPECT_LT(opinion.needed_runs, 20);
}

TEST(TryVerdict, LaterChangesNeedMoreEvidenceAndKeepsEarnSome) {
  EXPECT_LT(needed_e_value(1, 0, FalseKeeps::few), needed_e_value(10, 0, FalseKeeps::few));
  EXPECT_GT(needed_e_value(10, 0, FalseKeeps::few), needed_e_value(10, 4, FalseKeeps::few));
  EXPECT_EQ(needed_e_value(10, 0, FalseKeeps::none), needed_e_value(10, 4, FalseKeeps::none));
  double spent = 0;
  for (std::size_t i = 1; i < 100'000; ++i) spent += 1 / needed_e_value(i, 0, FalseKeeps::none);
  EXPECT_LT(spent, 0.05);
}

}  // namespace
}  // namespace stepladder
