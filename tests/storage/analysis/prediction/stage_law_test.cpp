// Laws on rows whose new times follow by hand.
#include "storage/analysis/prediction/stage_law.h"

#include <gtest/gtest.h>

#include "storage/analysis/prediction/prediction.h"
#include "storage/analysis/prediction/step_floor.h"

namespace stepladder {
namespace {

// 2 GFLOP in 4 ms; 8 MB in 2 ms, which is 4 GB/s; and a row of which nothing is known.
const std::vector<LawRow> rows{
    {.kind = OperatorKind::products, .part = ModelPart::mlp, .name = "aten::mm", .ms = 4, .flops = 2e9, .bytes = 1e6},
    {.kind = OperatorKind::optimizer, .name = "aten::add_", .ms = 2, .bytes = 8e6},
    {.kind = OperatorKind::gelu, .part = ModelPart::mlp, .name = "aten::gelu", .ms = 1},
    {.kind = OperatorKind::communication, .name = "nccl", .ms = 3},
    {.kind = OperatorKind::idle, .ms = 1}};

const LawFacts facts{.device = "cpu",
                     .parameters_before = 1e5,
                     .parameters_after = 5e4,
                     .precision = "fp32",
                     .tflops = {{"fp32", 1}, {"bf16", 2}},
                     .bandwidth_gb_s = 10};

double after(const LawTerm& term, const LawFacts& known = facts) {
  const LawAnswer answer = apply({.terms = {term}}, known, rows);
  return answer.unknown.empty() ? answer.changes.front().after_ms : missing;
}

TEST(StageLaw, each_rule_has_its_arithmetic) {
  const std::vector products{OperatorKind::products}, update{OperatorKind::optimizer};
  EXPECT_DOUBLE_EQ(after({.kinds = products, .rule = LawRule::at_peak, .precision = "bf16"}), 1);
  EXPECT_DOUBLE_EQ(after({.kinds = products, .rule = LawRule::at_peak}), 2);
  EXPECT_DOUBLE_EQ(after({.kinds = products, .rule = LawRule::times, .amount = 0.5}), 2);
  EXPECT_DOUBLE_EQ(after({.kinds = products, .rule = LawRule::vanishes}), 0);
  EXPECT_DOUBLE_EQ(after({.kinds = products, .rule = LawRule::unchanged}), 4);
  EXPECT_DOUBLE_EQ(after({.kinds = update, .rule = LawRule::by_parameters}), 1);
  EXPECT_DOUBLE_EQ(after({.kinds = update, .rule = LawRule::moves_bytes, .amount = 28}), 0.7);
  EXPECT_DOUBLE_EQ(after({.kinds = update, .rule = LawRule::adds_bytes, .amount = 12}), 2 + 0.15);
  EXPECT_DOUBLE_EQ(after({.rule = LawRule::times, .amount = 0.5}),
                   3.5);  // all work, but no communication and no waiting
  EXPECT_DOUBLE_EQ(after({.part = ModelPart::mlp, .rule = LawRule::vanishes}), 0);
}

TEST(StageLaw, calls_that_do_little_take_no_bandwidth) {
  std::vector<LawRow> small{
      {.kind = OperatorKind::optimizer, .name = "a", .ms = 2, .calls = 100, .call_ms = 0.01, .bytes = 8e6}};
  const LawTerm fused{.kinds = {OperatorKind::optimizer}, .rule = LawRule::moves_bytes, .amount = 28};
  EXPECT_DOUBLE_EQ(apply({.terms = {fused}}, facts, small).changes.front().after_ms, 0.35);  // 2.8 MB at 8 GB/s
  small.front().call_ms = 1;                                                                 // never all of the time
  EXPECT_NEAR(apply({.terms = {fused}}, facts, small).changes.front().after_ms, 0.07, 1e-9);
}

TEST(StageLaw, it_is_silent_about_what_it_cannot_know) {
  LawFacts nothing{.device = "cpu"};
  EXPECT_TRUE(is_missing(after({.rule = LawRule::at_peak, .precision = "bf16"}, nothing)));
  EXPECT_TRUE(is_missing(after({.rule = LawRule::by_parameters}, nothing)));
  EXPECT_TRUE(is_missing(after({.rule = LawRule::moves_bytes, .amount = 28}, nothing)));
  const LawAnswer elsewhere = apply({.terms = {{.device = "cuda"}}, .unknown = "it needs a GPU"}, facts, rows);
  EXPECT_EQ(elsewhere.unknown, "it needs a GPU");
  EXPECT_TRUE(elsewhere.changes.empty());
}

TEST(StageLaw, a_row_without_counted_flops_stays_and_none_gets_slower_at_the_peak) {
  LawFacts slow = facts;
  slow.tflops = {{"fp32", 0.1}};
  EXPECT_DOUBLE_EQ(after({.kinds = {OperatorKind::products, OperatorKind::gelu}, .rule = LawRule::at_peak}, slow), 5);
}

TEST(PredictedStep, an_estimate_has_the_error_of_the_past_and_a_bound_begins_at_no_gain) {
  std::vector<PastPrediction> past;
  for (int i = 0; i < 4; ++i) past.push_back({"a", "cpu", 1, i % 2 == 0 ? 1.1 : 1 / 1.1});
  const LawRecord record = record_of("a", "cpu", false, past);
  EXPECT_EQ(record.n, 4U);
  const std::vector<double> ratios{0.5, 0.5, 0.5};
  const PredictedStep step = predicted_step(ratios, false, 100, {99, 101}, record);
  EXPECT_EQ(step.bound, Bound::estimate);
  EXPECT_DOUBLE_EQ(step.ms, 50);
  EXPECT_DOUBLE_EQ(step.factor, 2);
  EXPECT_LT(step.ci95.low, 50 / 1.2);
  EXPECT_GT(step.ci95.high, 50 * 1.2);
  const PredictedStep bound = predicted_step(ratios, true, 100, {99, 101}, {});
  EXPECT_EQ(bound.bound, Bound::at_most);
  EXPECT_DOUBLE_EQ(bound.factor_ci95.low, 1);
  EXPECT_DOUBLE_EQ(bound.ci95.high, 101);
}

TEST(PredictedStep, a_law_that_was_wrong_is_silent) {
  std::vector<PastPrediction> past;
  for (int i = 0; i < 3; ++i) past.push_back({"a", "cpu", 0.5, 1});
  for (int i = 0; i < 3; ++i) past.push_back({"b", "cpu", 0.9, 0.5, true});
  const std::vector<double> ratios{0.5};
  EXPECT_EQ(predicted_step(ratios, false, 1, {}, record_of("a", "cpu", false, past)).bound, Bound::unknown);
  EXPECT_EQ(predicted_step(ratios, true, 1, {}, record_of("b", "cpu", true, past)).bound, Bound::unknown);
  EXPECT_EQ(predicted_step(ratios, false, 1, {}, record_of("c", "cpu", false, past)).bound, Bound::estimate);
  EXPECT_EQ(predicted_step(ratios, false, 1, {}, record_of("a", "cuda", false, past)).bound, Bound::estimate);
  EXPECT_EQ(predicted_step({}, false, 1, {}, {}).bound, Bound::unknown);
  EXPECT_EQ(predicted_step(ratios, false, missing, {}, {}).bound, Bound::unknown);
}

TEST(StepFloor, keeps_what_is_not_known_and_communication_and_drops_waiting) {
  const StepFloor floor = step_floor(rows, 1, 10);
  EXPECT_DOUBLE_EQ(floor.step_ms, 11);
  EXPECT_DOUBLE_EQ(floor.floor_ms, 2 + 0.8 + 1 + 3);
  EXPECT_DOUBLE_EQ(floor.known_share, 6.0 / 7);
  EXPECT_EQ(floor.kinds.front().kind, OperatorKind::products);
  EXPECT_TRUE(is_missing(step_floor(rows, missing, 10).floor_ms));
  EXPECT_TRUE(is_missing(step_floor({}, missing, 10).share()));
}

}  // namespace
}  // namespace stepladder
