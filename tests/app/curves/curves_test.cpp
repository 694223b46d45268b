#include "app/curves/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stepladder {
namespace {

Series series_of(const std::vector<StepRecord>& steps) {
  Series series;
  for (const StepRecord& step : steps) series.append(step);
  return series;
}

const Run run{.tokens_per_step = 100, .model_flops_per_token = 6};

TEST(Curves, EachAxisIsWhatItsNameSays) {
  const Series series = series_of({{.step = 1, .loss = 3, .dt_ms = 500, .tokens = 100, .lr = 0.1},
                                   {.step = 2, .loss = 2, .dt_ms = 250, .tokens = 100, .lr = 0.3},
                                   {.step = 3, .loss = 1, .dt_ms = 250, .tokens = 100, .lr = 0.2}});
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::step).x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::tokens).x, (std::vector<double>{100, 200, 300}));
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::time).x, (std::vector<double>{0.5, 0.75, 1}));
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::flops).x, (std::vector<double>{600, 1200, 1800}));
  const Points by_lr = points_of(run, series, Quantity::loss, Axis::lr);
  EXPECT_EQ(by_lr.x, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(by_lr.y, (std::vector<double>{3, 1, 2}));
  EXPECT_FALSE(by_lr.is_path);
  EXPECT_EQ(points_of(run, series, Quantity::tokens_per_s, Axis::step).y, (std::vector<double>{200, 400, 400}));
}

TEST(Curves, TheWallClockHasThePausesInIt) {
  const Series series = series_of({{.step = 1, .loss = 3, .dt_ms = 500, .at = 1000},
                                   {.step = 2, .loss = 2, .dt_ms = 500, .at = 1060},
                                   {.step = 3, .loss = 1, .dt_ms = 500}});
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::wall).x, (std::vector<double>{0, 60}));
}

TEST(Curves, ALogThatPrintsEveryTenthStepCountsTheTokensBetween) {
  const Series series = series_of({{.step = 10, .loss = 3, .dt_ms = 100}, {.step = 20, .loss = 2, .dt_ms = 100}});
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::tokens).x, (std::vector<double>{1000, 2000}));
  EXPECT_EQ(points_of(run, series, Quantity::loss, Axis::time).x, (std::vector<double>{0.1, 1.1}));
}

TEST(Curves, WhatIsNotKnownIsLeftOutAndWhatIsNotANumberStays) {
  const Series series =
      series_of({{.step = 1, .loss = missing}, {.step = 2, .loss = std::nan("")}, {.step = 3, .loss = 1}});
  const Points points = points_of({}, series, Quantity::loss, Axis::step);
  ASSERT_EQ(points.x, (std::vector<double>{2, 3}));
  EXPECT_TRUE(std::isnan(points.y[0]));
  EXPECT_TRUE(points_of({}, series, Quantity::loss, Axis::tokens).empty()) << "tokens are not known";
  EXPECT_TRUE(points_of({.tokens_per_step = 5}, series, Quantity::loss, Axis::flops).empty());
}

TEST(Curves, DifferencesAreTakenAtEqualXOrBetweenTwoPoints) {
  const Points base{.x = {1, 2, 4}, .y = {10, 8, 4}};
  const Points other{.x = {0, 1, 3, 4, 5}, .y = {9, 9, 9, 9, 9}};
  const Points gap = difference(other, base);
  EXPECT_EQ(gap.x, (std::vector<double>{1, 3, 4}));
  EXPECT_EQ(gap.y, (std::vector<double>{-1, 3, 5}));
  EXPECT_EQ(ratio(other, base).y, (std::vector<double>{0.9, 1.5, 2.25}));
  EXPECT_TRUE(difference(other, {}).empty());
}

TEST(Curves, TheMeanIsOverTheRunsThatAreThere) {
  const std::vector<Points> runs{{.x = {1, 2, 3}, .y = {1, 2, 3}}, {.x = {2, 3, 4}, .y = {4, 5, 6}}};
  const MeanCurve mean = mean_of(runs);
  EXPECT_EQ(mean.mean.x, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(mean.mean.y, (std::vector<double>{1, 3, 4, 6}));
  EXPECT_EQ(mean.low, (std::vector<double>{1, 2, 3, 6}));
  EXPECT_EQ(mean.high, (std::vector<double>{1, 4, 5, 6}));
  EXPECT_EQ(mean.runs, (std::vector<int>{1, 2, 2, 1}));
  EXPECT_TRUE(mean_of({}).mean.empty());
  EXPECT_TRUE(mean_of(std::vector<Points>{{}, {}}).mean.empty());
}

TEST(Curves, ARunThatIsNotANumberLeavesTheMean) {
  const double nothing = std::nan("");
  const std::vector<Points> runs{{.x = {1, 2, 3}, .y = {1, nothing, nothing}}, {.x = {1, 2, 3}, .y = {3, 5, nothing}}};
  const MeanCurve mean = mean_of(runs);
  EXPECT_EQ(mean.runs, (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(mean.mean.y[0], 2);
  EXPECT_EQ(mean.mean.y[1], 5);
  EXPECT_EQ(mean.high[1], 5);
  EXPECT_TRUE(std::isnan(mean.mean.y[2]) && !is_missing(mean.mean.y[2])) << "it is counted as NaN, not as unknown";
}

TEST(Curves, TheMeanOfRunsAtOtherPlacesIsInterpolated) {
  const std::vector<Points> runs{{.x = {0, 10, 20}, .y = {0, 10, 20}}, {.x = {5, 15}, .y = {7, 17}}};
  const MeanCurve mean = mean_of(runs);
  EXPECT_EQ(mean.mean.x, (std::vector<double>{0, 5, 10, 15, 20}));
  EXPECT_EQ(mean.mean.y, (std::vector<double>{0, 6, 11, 16, 20}));
  EXPECT_EQ(mean.runs, (std::vector<int>{1, 2, 2, 2, 1}));
  std::vector<Points> apart;  // no two of them share a place
  for (int r = 0; r < 5; ++r) {
    Points& run = apart.emplace_back();
    for (int i = 0; i < 100; ++i) run.x.push_back(5 * i + r), run.y.push_back(r);
  }
  const MeanCurve thinned = mean_of(apart);
  EXPECT_EQ(thinned.mean.x.size(), 100u);
  EXPECT_EQ(thinned.mean.x.front(), 0);
  EXPECT_EQ(thinned.mean.x.back(), 499);
  EXPECT_EQ(thinned.mean.y[50], 2) << "all five are there";
}

TEST(Curves, StatisticsOfWhatIsInSight) {
  const Points points{.x = {1, 2, 3, 4}, .y = {5, 1, std::numeric_limits<double>::infinity(), 3}};
  const RangeStatistics seen = statistics_between(points, 2, 4);
  EXPECT_EQ(seen.count, 2u);
  EXPECT_EQ(seen.mean, 2);
  EXPECT_EQ(seen.low, 1);
  EXPECT_EQ(seen.high, 3);
  EXPECT_EQ(seen.last, 3);
  EXPECT_TRUE(std::isinf(statistics_between(points, 2, 3).last));
  EXPECT_EQ(statistics_between(points, 8, 9).count, 0u);
  EXPECT_EQ(value_at(points, 1.4), 5);
  EXPECT_EQ(value_at(points, 1.6), 1);
  EXPECT_TRUE(is_missing(value_at(points, 9)));
}

}  // namespace
}  // namespace stepladder
