#include "app/curves/overview_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepladder {
namespace {

Overview buckets_of(const std::vector<double>& values, std::int64_t width) {
  Overview overview{.width = width};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bucket next = bucket_of(static_cast<std::int64_t>(i) + 1, values[i]);
    if (static_cast<std::int64_t>(i) % width == 0) {
      overview.buckets.push_back(next);
    } else {
      merge(overview.buckets.back(), next);
    }
  }
  return overview;
}

TEST(OverviewCurve, KeepsTheLowestAndTheHighestOfEachBucketInTheirOrder) {
  const OverviewCurve curve = curve_of(buckets_of({1, 2, 9, 3, /**/ 5, 0, 4, 4, /**/ 7, 7, 7, 7}, 4));
  EXPECT_EQ(curve.points.x, (std::vector<double>{1, 4, 5, 8, 9, 12}));
  EXPECT_EQ(curve.points.y, (std::vector<double>{1, 9, 5, 0, 7, 7}));
  EXPECT_EQ(curve.levels.points(), 6u);
  EXPECT_EQ(curve.behind(), 12);
  EXPECT_EQ(curve_of(buckets_of({1, 2}, 1)).behind(), 0) << "the values themselves";
}

TEST(OverviewCurve, ABucketWithoutANumberIsCountedAndNotDrawn) {
  const OverviewCurve curve = curve_of(buckets_of({1, 2, std::nan(""), std::nan("")}, 2));
  EXPECT_EQ(curve.points.x, (std::vector<double>{1, 2}));
  EXPECT_EQ(curve.behind(), 4);
}

TEST(OverviewCurve, IsDrawnAsMeansBetweenTheLowestAndHighestOfEachBucket) {
  const Overview overview = buckets_of({1, 2, 9, 4, /**/ 5, 5, 5, 5, /**/ 6, 8}, 4);
  const MeanCurve means = curve_of(overview).means;
  EXPECT_EQ(means.mean.x, (std::vector<double>{1, 5, 9, 10}));
  EXPECT_EQ(means.mean.y, (std::vector<double>{4, 5, 7, 7}));
  EXPECT_EQ(means.low, (std::vector<double>{1, 5, 6, 6}));
  EXPECT_EQ(means.high, (std::vector<double>{9, 5, 8, 8})) << "no spike vanishes";
  EXPECT_TRUE(curve_of(buckets_of({1, 2}, 1)).means.mean.empty()) << "the values themselves";

  const MeanCurve by_time = placed(means, {.x = {1, 9}, .y = {0, 80}});
  EXPECT_EQ(by_time.mean.x, (std::vector<double>{0, 40, 80})) << "a step beyond the end has no place";
  EXPECT_EQ(by_time.high, (std::vector<double>{9, 5, 8}));
}

TEST(OverviewCurve, StepTimesAddUpToAPlaceOnTheAxisOfTime) {
  std::vector<double> dt_ms(100, 20);
  dt_ms[41] = 5020;  // a pause of five seconds in the fifth bucket
  const Points totals = totals_of(buckets_of(dt_ms, 10));
  EXPECT_NEAR(totals.y.back(), 100 * 20 + 5000, 1e-9);
  const Points places = places_of({}, {}, totals, Axis::time);
  EXPECT_NEAR(places.y.back(), 7, 1e-9) << "seconds";
  const Points by_step{.x = {1, 40, 50, 100, 101}, .y = {9, 8, 7, 6, 5}};
  const Points by_time = placed(by_step, places);
  ASSERT_EQ(by_time.x.size(), 4u) << "a step beyond the end has no place";
  EXPECT_NEAR(by_time.x[1], 0.8, 1e-9);
  EXPECT_NEAR(by_time.x[2], 6, 1e-9);
  EXPECT_EQ(by_time.y, (std::vector<double>{9, 8, 7, 6}));
  EXPECT_NEAR(step_at(places, 0.8), 40, 1e-6);
  EXPECT_EQ(step_at(places, -1), 1);
  EXPECT_EQ(step_at(places, 1000), 100);
  EXPECT_TRUE(is_missing(step_at({}, 1)));
}

TEST(OverviewCurve, TokensArePlacedByAnExcerpt) {
  Series excerpt;
  for (const std::int64_t step : {10, 20, 1000}) excerpt.append({.step = step, .loss = 1, .tokens = 100});
  const Points places = places_of({.tokens_per_step = 100}, excerpt, {}, Axis::tokens);
  EXPECT_EQ(places.x, (std::vector<double>{10, 20, 1000}));
  EXPECT_EQ(places.y, (std::vector<double>{1000, 2000, 100'000}));
}

}  // namespace
}  // namespace stepladder
