// Tests the rows of the Compare view's table, without a window.
#include <gtest/gtest.h>

#include <limits>

#include "app/panels/compare/numbers.h"

namespace stepladder {
namespace {

ComparedLine line_of_losses() {
  ComparedLine line;
  line.runs = {7};
  line.metrics[Quantity::loss].points = {.x = {1, 2, 3}, .y = {4, 3, 2.5}};
  return line;
}

RungJudgement faster() {
  RungJudgement judged;
  judged.tokens_per_s = 2000;
  judged.over_baseline.factor = 2;
  judged.over_baseline.ci95 = {1.9, 2.1};
  judged.over_baseline.verdict = Verdict::faster;
  return judged;
}

ComparedNumbers row_of(const RungJudgement* judged, bool is_base = false, const SharedX& x = {}) {
  const ComparedLine line = line_of_losses();
  return compared_numbers(line, is_base, judged, statistics_between(line.of(Quantity::loss).points, 0, 10),
                          Quantity::loss, x);
}

TEST(CompareNumbers, a_faster_line_says_by_how_much) {
  const RungJudgement judged = faster();
  const ComparedNumbers row = row_of(&judged);
  EXPECT_EQ(row.tokens_per_s, "2.00 k");
  EXPECT_EQ(row.factor, "2.00 x");
  EXPECT_EQ(row.ci95, "1.90 - 2.10");
  EXPECT_EQ(row.verdict, "+ faster");
  EXPECT_FALSE(row.rate_is_doubted || row.factor_is_doubted);
  EXPECT_EQ(row.verdict_tone, Tone::good);
  EXPECT_TRUE(row.loss);
  EXPECT_EQ(row.min, "2.5000");
  EXPECT_EQ(row.max, "4.0000");
  EXPECT_EQ(row.last, "2.5000");
  EXPECT_EQ(row.at_cursors, "");
}

TEST(CompareNumbers, a_last_value_that_is_not_finite_is_shown_as_such) {
  ComparedLine line = line_of_losses();
  ComparedMetric& loss = line.metrics[Quantity::loss];
  const auto last = [&](const SharedX& x = {}) {
    return compared_numbers(line, false, nullptr, statistics_between(loss.points, 0, 10), Quantity::loss, x).last;
  };
  loss.ends_not_finite = true;  // behind the points of an overview
  EXPECT_EQ(last(), "NaN or inf");
  EXPECT_EQ(last({.low = 1, .high = 2}), "2.5000") << "the end isn't in sight";
  loss.ends_not_finite = false;
  loss.points.x.push_back(4);
  loss.points.y.push_back(std::numeric_limits<double>::infinity());
  EXPECT_EQ(last(), "Infinity");
}

TEST(CompareNumbers, an_impossible_line_is_not_called_faster) {
  RungJudgement judged = faster();
  judged.trust = judged.over_baseline.trust = Trust::impossible;
  EXPECT_EQ(row_of(&judged).verdict, "impossible");
  EXPECT_TRUE(row_of(&judged).rate_is_doubted && row_of(&judged).factor_is_doubted);
  EXPECT_EQ(row_of(&judged).verdict_tone, Tone::bad);
}

TEST(CompareNumbers, a_doubtful_line_says_that_it_is) {
  RungJudgement judged = faster();
  judged.trust = judged.over_baseline.trust = Trust::doubtful;
  EXPECT_EQ(row_of(&judged).verdict, "faster, doubtful");
  EXPECT_EQ(row_of(&judged).verdict_tone, Tone::warning);
  EXPECT_EQ(row_of(&judged, true).verdict, "baseline, doubtful");
}

TEST(CompareNumbers, what_cannot_be_judged_says_so) {
  RungJudgement judged = faster();
  judged.over_baseline.verdict = Verdict::cannot_tell;
  EXPECT_EQ(row_of(&judged).verdict, "inconclusive");
  judged.over_baseline = {};
  judged.why_no_factor = "baseline: no step times";
  EXPECT_EQ(row_of(&judged).verdict, "baseline: no step times");
  EXPECT_EQ(row_of(nullptr).factor, "...") << "it is being computed";
  EXPECT_FALSE(row_of(nullptr).loss);
}

TEST(CompareNumbers, a_run_that_is_to_come_has_no_loss_verdict_yet) {
  RungJudgement judged;
  judged.is_under_way = true;
  judged.why_no_factor = "queued";
  EXPECT_EQ(row_of(&judged).verdict, "queued");
  EXPECT_FALSE(row_of(&judged).loss);
  judged.is_under_way = false;
  EXPECT_TRUE(row_of(&judged).loss);
}

TEST(CompareNumbers, the_baseline_is_not_compared_with_itself) {
  const RungJudgement judged = faster();
  const ComparedNumbers row = row_of(&judged, true);
  EXPECT_EQ(row.verdict, "baseline");
  EXPECT_EQ(row.factor, "1 x");
  EXPECT_EQ(row.ci95, "");
  EXPECT_FALSE(row.loss);
}

TEST(CompareNumbers, cursors_read_the_values_beneath_them) {
  SharedX x;
  x.a = 1;
  x.b = 3;
  const ComparedNumbers row = row_of(nullptr, false, x);
  EXPECT_EQ(row.at_cursors, "4.0000, 2.5000");
  EXPECT_EQ(row.between_them, "-1.5000");
  x.b = missing;
  EXPECT_EQ(row_of(nullptr, false, x).between_them, "-");
}

}  // namespace
}  // namespace stepladder
