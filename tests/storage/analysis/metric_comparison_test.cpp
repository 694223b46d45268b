#include "storage/analysis/metric_comparison.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace stepladder {
namespace {

constexpr MetricRules lower{.direction = Direction::lower};

TEST(MetricComparison, NamesBoundValues) {
  EXPECT_NE(impossible_value("val_bpb", 0.99, -0.5), "");
  EXPECT_NE(impossible_value("val/acc", 0.9, 1.7), "");
  EXPECT_NE(impossible_value("val_acc", 0.9, 90), "") << "per cent after a share";
  EXPECT_NE(impossible_value("val_acc", 90, 170), "");
  EXPECT_EQ(impossible_value("val_acc", 90, 91), "");
  EXPECT_EQ(impossible_value("val_acc", 0.9, 1), "");
  EXPECT_EQ(impossible_value("score", 0.9, 90), "");
  EXPECT_EQ(impossible_value("loss", 0.9, -1), "") << "of a density";
}

TEST(MetricComparison, ADifferenceBeyondTheSpreadIsBetterOrWorse) {
  const std::vector<double> base{0.98, 0.981, 0.979}, run{0.95, 0.951, 0.949};
  const MetricComparison better = judge_metric(base, run, lower);
  EXPECT_EQ(better.verdict, MetricVerdict::better);
  EXPECT_NEAR(better.difference, -0.03, 1e-12);
  // Welch: 0.001 on both sides, three runs each, four degrees of freedom.
  EXPECT_NEAR(better.ci95.high - better.difference, 2.7764451 * 0.001 * std::sqrt(2.0 / 3), 1e-8);
  EXPECT_EQ(judge_metric(run, base, lower).verdict, MetricVerdict::worse);
  EXPECT_EQ(judge_metric(base, run, {.direction = Direction::higher}).verdict, MetricVerdict::worse);
  EXPECT_EQ(judge_metric(base, run, {}).verdict, MetricVerdict::cannot_tell) << "nobody said which is better";
  EXPECT_EQ(judge_metric(base, base, lower).verdict, MetricVerdict::same);
}

TEST(MetricComparison, ValuesMayHaveAnySign) {
  const std::vector<double> base{-10, -10.1, -9.9}, run{-8, -8.1, -7.9};
  EXPECT_EQ(judge_metric(base, run, {.direction = Direction::higher}).verdict, MetricVerdict::better);
  const std::vector<double> around_zero{0.1, -0.1, 0.05};
  EXPECT_EQ(judge_metric(around_zero, run, {.direction = Direction::higher}).verdict, MetricVerdict::worse);
}

TEST(MetricComparison, OneRunASideAndCopiesSayNothing) {
  EXPECT_FALSE(judge_metric(std::vector{0.98}, std::vector{0.5}, lower).ci95.known());
  const MetricComparison copies = judge_metric(std::vector{0.98, 0.98}, std::vector{0.5, 0.5}, lower);
  EXPECT_FALSE(copies.ci95.known());
  EXPECT_EQ(copies.verdict, MetricVerdict::cannot_tell);
  EXPECT_EQ(judge_metric(std::vector{0.9812, 0.9812}, std::vector{0.9812, 0.9812}, lower).verdict, MetricVerdict::same);
  EXPECT_TRUE(is_missing(judge_metric({}, std::vector{0.5}, lower).difference));
  const MetricComparison broken = judge_metric(std::vector<double>{1.0, NAN, 1.1}, std::vector{1.0, 1.1, 1.0}, lower);
  EXPECT_EQ(broken.verdict, MetricVerdict::cannot_tell);
}

TEST(MetricComparison, EqualFiguresAreKnownToHalfTheirLastDigit) {
  const std::vector<double> seconds{2, 2, 2}, fine{2.0001, 2.0001, 2.0001};
  for (const Looks& looks : {Looks{}, Looks(3)}) {
    const MetricRules rules{.direction = Direction::lower, .looks = looks};
    const MetricComparison coarse = judge_metric(seconds, seconds, rules);
    EXPECT_EQ(coarse.verdict, MetricVerdict::cannot_tell);
    EXPECT_DOUBLE_EQ(coarse.ci95.low, -1);
    EXPECT_DOUBLE_EQ(coarse.ci95.high, 1);
    EXPECT_EQ(judge_metric(fine, fine, rules).verdict, MetricVerdict::same);
  }
  const std::vector<double> exact{0.1 + 0.2, 0.1 + 0.2};
  EXPECT_EQ(judge_metric(exact, exact, lower).verdict, MetricVerdict::cannot_tell) << "0.3 and half a tenth";
}

TEST(MetricComparison, SaysHowManyMoreRunsWouldDo) {
  const std::vector<double> base{1.00, 1.02, 0.98}, run{0.985, 1.005, 0.965};
  const MetricComparison unclear = judge_metric(base, run, lower);
  EXPECT_EQ(unclear.verdict, MetricVerdict::cannot_tell);
  EXPECT_GT(unclear.needed_runs, 3);
  EXPECT_LT(unclear.needed_runs, 200);
}

// Equal programs in turns, looked at after each of ten rounds.
TEST(MetricComparison, LookingAgainFindsNothingThatIsntThere) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.02);
  const Looks looks(10);
  int found = 0;
  constexpr int questions = 1000;
  for (int i = 0; i < questions; ++i) {
    std::vector<double> base, run;
    for (std::size_t round = 1; round <= 10; ++round) {
      base.push_back(1 + noise(random));
      run.push_back(1 + noise(random));
      if (!looks.is_at(round)) continue;
      const MetricVerdict verdict = judge_metric(base, run, {.direction = Direction::lower, .looks = looks}).verdict;
      if (verdict == MetricVerdict::cannot_tell) continue;
      found += verdict != MetricVerdict::same;
      break;
    }
  }
  EXPECT_LE(found, 0.05 * questions);
}

}  // namespace
}  // namespace stepladder
