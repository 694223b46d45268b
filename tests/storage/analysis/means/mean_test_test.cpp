#include "storage/analysis/means/mean_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace stepladder {
namespace {

const std::vector<double> losses{3.2781, 3.2769, 3.2790, 3.2775, 3.2772};
const std::vector<double> record_losses{3.2792, 3.2801, 3.2789, 3.2810};

TEST(MeanTest, agrees_with_published_values) {  // SciPy: ttest_1samp, t.interval, norm.cdf, ttest_ind
  const SampleFigures sample = figures_of(losses);
  EXPECT_NEAR(p_below_t(sample, 3.28), 0.00185979385619768, 1e-9 * 0.00186);
  const Interval interval = mean_interval(sample);
  EXPECT_NEAR(interval.low, 3.276706356670455, 1e-12);
  EXPECT_NEAR(interval.high, 3.2787736433295454, 1e-12);
  EXPECT_NEAR(p_below_z(sample, 3.28, 0.0013), 5.067892906783679e-05, 1e-13);
  EXPECT_NEAR(p_below_welch(sample, figures_of(record_losses), 0.0005), 0.02038348911870433, 1e-10);
  EXPECT_DOUBLE_EQ(sample.median, 3.2775);
  EXPECT_DOUBLE_EQ(sample.low, 3.2769);
  EXPECT_DOUBLE_EQ(sample.high, 3.2790);
}

TEST(MeanTest, agrees_with_a_published_record) {
  // modded-nanogpt's record of 2026-01-16 and the one before; its page prints p=0.0067 and p=0.0246.
  const std::vector<double> record{3.2790, 3.2798, 3.2776, 3.2798, 3.2792, 3.2768, 3.2785, 3.2807, 3.2793, 3.2774};
  const std::vector<double> before{3.2791, 3.2794, 3.2795, 3.2820, 3.2794, 3.2796, 3.2764, 3.2775, 3.2786, 3.2773};
  EXPECT_NEAR(p_below_t(figures_of(record), 3.28), 0.0067, 5e-5);
  EXPECT_NEAR(p_below_t(figures_of(before), 3.28), 0.0246, 5e-5);
}

TEST(MeanTest, claims_nothing_that_the_values_cannot_show) {
  EXPECT_EQ(figures_of({}).n, 0u);
  EXPECT_TRUE(is_missing(figures_of({}).mean));
  const std::vector<double> one{3.2};
  EXPECT_TRUE(is_missing(p_below_t(figures_of(one), 3.28)));
  EXPECT_FALSE(mean_interval(figures_of(one)).known());
  EXPECT_FALSE(is_missing(p_below_z(figures_of(one), 3.28, 0.0013)));
  const std::vector<double> equal{3.1, 3.1, 3.1};
  EXPECT_EQ(figures_of(equal).std, 0);
  EXPECT_TRUE(is_missing(p_below_t(figures_of(equal), 3.28)));
  const std::vector<double> diverged{3.27, NAN, 3.27};
  EXPECT_TRUE(std::isnan(figures_of(diverged).mean));
  EXPECT_TRUE(is_missing(p_below_t(figures_of(diverged), 3.28)));
  EXPECT_EQ(needed_for_t(-1, 0.01, 0.9), 0);
  EXPECT_EQ(needed_for_t(1e-9, 0.01, 0.9), 0);
}

TEST(MeanTest, false_alarms_and_coverage_are_as_promised) {
  std::mt19937_64 random(20);
  const auto pool = [&](int n, double mean, double std) {
    std::normal_distribution<double> value(mean, std);
    std::vector<double> values(static_cast<std::size_t>(n));
    for (double& it : values) it = value(random);
    return figures_of(values);
  };
  constexpr int pools = 20'000;
  int passed = 0, mean_covered = 0, ratio_covered = 0, welch_passed = 0;
  for (int i = 0; i < pools; ++i) {
    const SampleFigures null = pool(8, 3.28, 0.0013);
    passed += p_below_t(null, 3.28) < 0.01;
    const Interval interval = mean_interval(null);
    mean_covered += interval.low <= 3.28 && 3.28 <= interval.high;
    const SampleFigures ours = pool(6, 100, 0.4);
    const SampleFigures theirs = pool(9, 102, 0.8);
    const Interval ratio = mean_ratio_interval(theirs, ours);
    ratio_covered += ratio.low <= 1.02 && 1.02 <= ratio.high;
    welch_passed += p_below_welch(ours, theirs, 2) < 0.01;
  }
  const auto share = [](int count) { return static_cast<double>(count) / pools; };
  EXPECT_GT(share(passed), 0.008);
  EXPECT_LT(share(passed), 0.012);
  EXPECT_GT(share(welch_passed), 0.008);
  EXPECT_LT(share(welch_passed), 0.012);
  for (const int covered : {mean_covered, ratio_covered}) {
    EXPECT_GT(share(covered), 0.94);
    EXPECT_LT(share(covered), 0.96);
  }
}

TEST(MeanTest, needed_number_reaches_the_asked_power) {
  std::mt19937_64 random(21);
  const std::int64_t n = needed_for_t(1.2, 0.01, 0.9);
  std::normal_distribution<double> value(-1.2, 1);
  const auto power = [&](std::int64_t size) {
    int found = 0;
    for (int i = 0; i < 10'000; ++i) {
      std::vector<double> values(static_cast<std::size_t>(size));
      for (double& it : values) it = value(random);
      found += p_below_t(figures_of(values), 0) < 0.01;
    }
    return found / 10'000.0;
  };
  EXPECT_GT(power(n), 0.89);
  EXPECT_LT(power(n - 1), 0.905);
  EXPECT_EQ(needed_for_z(1.2, 0.01, 0.9), 10);  // ((2.3263 + 1.2816) / 1.2)^2 = 9.04
  EXPECT_GE(needed_for_welch(1.2, 1, 1, 0.01, 0.9), 19);
  EXPECT_LE(needed_for_welch(1.2, 1, 1, 0.01, 0.9), 21);
}

}  // namespace
}  // namespace stepladder
