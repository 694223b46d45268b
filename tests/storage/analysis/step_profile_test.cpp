#include "storage/analysis/step_profile.h"

#include <gtest/gtest.h>

#include <array>

#include "storage/database/run_store.h"

namespace stepladder {
namespace {

OperatorTime forward(const char* name, double ms, const char* shapes = "", double flops = missing) {
  return {.part = "forward", .name = name, .shapes = shapes, .calls = 2, .self_ms = ms, .flops = flops};
}

StepProfile small_profile() {
  return {.steps = 3,
          .operators = {forward("aten::addmm", 4, "8x4 4x4", 2e6),
                        forward("aten::addmm", 6, "8x4 4x16", 8e6),
                        forward("aten::gelu", 3),
                        forward("", 0.5),
                        {.part = "optimizer", .name = "aten::addmm", .calls = 1, .self_ms = 1}}};
}

TEST(StepProfile, OperatorsHaveKinds) {
  EXPECT_EQ(kind_of(forward("aten::bmm", 1)), OperatorKind::products);
  EXPECT_EQ(kind_of(forward("aten::_scaled_dot_product_flash_attention_for_cpu", 1)), OperatorKind::attention);
  EXPECT_EQ(kind_of(forward("aten::_log_softmax", 1)), OperatorKind::softmax);
  EXPECT_EQ(kind_of(forward("aten::native_layer_norm_backward", 1)), OperatorKind::layer_norm);
  EXPECT_EQ(kind_of(forward("aten::gelu_backward", 1)), OperatorKind::gelu);
  EXPECT_EQ(kind_of(forward("aten::mul", 1)), OperatorKind::elementwise);
  EXPECT_EQ(kind_of(forward("aten::_to_copy", 1)), OperatorKind::copies);
  EXPECT_EQ(kind_of(forward("aten::embedding_dense_backward", 1)), OperatorKind::embedding);
  EXPECT_EQ(kind_of(forward("aten::view", 1)), OperatorKind::between);
  EXPECT_EQ(kind_of(forward("autograd", 1)), OperatorKind::between);
  EXPECT_EQ(kind_of(forward("", 1)), OperatorKind::between);
  EXPECT_EQ(kind_of(forward("plan::attention_out_backward", 1)), OperatorKind::products);
  EXPECT_EQ(kind_of(forward("plan::attention_backward", 1)), OperatorKind::attention);
  EXPECT_EQ(kind_of(forward("plan::weight_gradient", 1)), OperatorKind::products);
  EXPECT_EQ(kind_of(forward("plan::add_norm", 1)), OperatorKind::layer_norm);
  EXPECT_EQ(kind_of({.part = "optimizer", .name = "aten::mul"}), OperatorKind::optimizer);
  EXPECT_EQ(kind_of({.part = "data", .name = "aten::copy_"}), OperatorKind::data);
}

TEST(StepProfile, KindsAddUpToAStep) {
  const StepProfile profile = small_profile();
  const KindTimes times(profile);
  EXPECT_DOUBLE_EQ(times.of(OperatorKind::products), 10);
  EXPECT_DOUBLE_EQ(times.of(OperatorKind::optimizer), 1);
  double sum = 0;
  for (const OperatorKind kind : all_operator_kinds) sum += times.of(kind);
  EXPECT_DOUBLE_EQ(sum, step_ms(profile));
}

TEST(StepProfile, IsScaledToTheMeasuredStep) {
  const FittedProfile fitted = fit_to_step(small_profile(), {}, 11.6);  // its steps took 14.5 ms
  EXPECT_TRUE(fitted.is_comparable);
  EXPECT_DOUBLE_EQ(step_ms(fitted.profile), 11.6);
  EXPECT_DOUBLE_EQ(fitted.profiled_ms, 14.5);
  EXPECT_DOUBLE_EQ(KindTimes(fitted.profile).of(OperatorKind::products), 8);
}

// One breakdown of a step: the parts of Run, the operators and the step time that stands beside them.
TEST(StepProfile, PartsAddUpToTheMedianStep) {
  const StepBreakdown slower = breakdown_of({.forward_ms = 6, .backward_ms = 12, .optimizer_ms = 2}, 16);
  EXPECT_DOUBLE_EQ(slower.parts.forward_ms, 4.8) << "means are longer than the median step";
  EXPECT_DOUBLE_EQ(slower.other_ms, 0);
  EXPECT_TRUE(is_missing(slower.parts.data_ms));
  const StepBreakdown faster = breakdown_of({.forward_ms = 6, .optimizer_ms = 2}, 10);
  EXPECT_DOUBLE_EQ(faster.parts.forward_ms, 6);
  EXPECT_DOUBLE_EQ(faster.other_ms, 2);
  EXPECT_FALSE(breakdown_of({}, 10).known());
  EXPECT_FALSE(breakdown_of({.forward_ms = 6}, missing).known());
}

TEST(StepProfile, AKindIsTheSameInTheBreakdownAndInTheOperators) {
  const StepParts means{.data_ms = 0.4, .forward_ms = 9, .optimizer_ms = 2};
  const FittedProfile fitted = fit_to_step(small_profile(), means, 12);
  const KindTimes times(fitted.profile);
  EXPECT_DOUBLE_EQ(times.of(OperatorKind::optimizer), 2);
  EXPECT_DOUBLE_EQ(times.of(OperatorKind::products), 9.0 * 10 / 13.5);
  EXPECT_NEAR(step_ms(fitted.profile), 12, 1e-9) << "with the rest, which no part has";
  const StepProfile waits{.steps = 1,
                          .operators = {{.part = "backward", .name = "aten::mm", .self_ms = 20},
                                        {.part = "backward", .name = "c10d::allreduce_", .self_ms = 4}}};
  const KindTimes waiting(fit_to_step(waits, {.backward_ms = 18, .communication_ms = 10}, 28).profile);
  EXPECT_DOUBLE_EQ(waiting.of(OperatorKind::communication), 10) << "within the backward pass of the profile";
  EXPECT_DOUBLE_EQ(waiting.of(OperatorKind::products), 18);
}

TEST(StepProfile, IsNotComparableWithAStepThatTookHalfAsLong) {
  for (const double median : {7.0, 30.0, missing}) {
    const FittedProfile fitted = fit_to_step(small_profile(), {}, median);
    EXPECT_FALSE(fitted.is_comparable) << median;
    EXPECT_DOUBLE_EQ(step_ms(fitted.profile), 14.5) << "as it was measured";
  }
}

TEST(StepProfile, ShapesAreOneRow) {
  const std::vector<OperatorTime> rows = by_name(small_profile());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(title_of(rows[0]), "addmm");
  EXPECT_EQ(rows[0].calls, 4);
  EXPECT_DOUBLE_EQ(rows[0].self_ms, 10);
  EXPECT_DOUBLE_EQ(gigaflops_per_s(rows[0]), 1);
  EXPECT_EQ(flop_rate_text(rows[0]), "1.00 G");
  OperatorTime fast = rows[0];
  fast.flops *= 15'000;
  EXPECT_EQ(flop_rate_text(fast), "15.0 T");
  EXPECT_EQ(flop_rate_text(rows[1]), "-");
  EXPECT_EQ(rows[1].name, "aten::gelu");
  EXPECT_TRUE(is_missing(gigaflops_per_s(rows[1])));
  EXPECT_EQ(rows[2].part, "optimizer");
  EXPECT_EQ(title_of(rows[3]), "outside operators");
}

TEST(StepProfile, TheMostExpensiveKindComesFirst) {
  const StepProfile before = small_profile();
  StepProfile after = small_profile();
  after.operators[2].self_ms = 12;                                      // GELU
  after.operators.push_back(forward("aten::scaled_dot_product", 0.2));  // new
  const std::array profiles{KindTimes(before), KindTimes(after)};
  EXPECT_EQ(kinds_in(profiles), (std::vector{OperatorKind::gelu, OperatorKind::products, OperatorKind::optimizer,
                                             OperatorKind::between, OperatorKind::attention}));
  EXPECT_EQ(kinds_in(std::span(profiles).first(1)).front(), OperatorKind::products);
  EXPECT_TRUE(kinds_in({}).empty());
}

TEST(StepProfile, IsKeptWithItsRunAndReplaced) {
  RunStore store = RunStore::in_memory();
  const RunId id = store.create_run({.name = "profiled", .status = RunStatus::finished});
  EXPECT_EQ(store.recordings().profile(id).steps, 0);
  StepProfile profile = small_profile();
  profile.run = id;
  profile.at = 12;
  store.apply(std::vector<RunEvent>{profile});
  StepProfile read = store.recordings().profile(id);
  EXPECT_EQ(read.steps, 3);
  EXPECT_EQ(read.at, 12);
  ASSERT_EQ(read.operators.size(), 5u);
  EXPECT_EQ(read.operators[0].shapes, "8x4 4x16") << "the most expensive first";
  EXPECT_EQ(read.operators[0].flops, 8e6);
  EXPECT_EQ(read.operators[1].calls, 2);
  EXPECT_TRUE(is_missing(read.operators[2].flops));

  profile.operators.resize(1);  // the run has continued
  store.apply(std::vector<RunEvent>{profile});
  EXPECT_EQ(store.recordings().profile(id).operators.size(), 1u);

  store.curation().set(id, {.deleted_at = 1000});
  ASSERT_EQ(store.bin().empty(2000).size(), 1u);
  EXPECT_EQ(store.recordings().profile(id).steps, 0);
  EXPECT_TRUE(store.recordings().profile(id).operators.empty());
}

TEST(StepProfile, ARunWithoutOneSaysWhy) {
  stepladder::Run run{.status = RunStatus::finished, .source = "import", .planned_steps = 100};
  EXPECT_NE(why_no_profile(run).find("trained here"), std::string::npos);
  run.source = "launched";
  run.device = "cuda";
  EXPECT_NE(why_no_profile(run).find("cuda"), std::string::npos);
  run.device = "cpu";
  run.status = RunStatus::failed;
  EXPECT_NE(why_no_profile(run).find("failed"), std::string::npos);
  run.planned_steps = 9;
  EXPECT_NE(why_no_profile(run).find("fewer than ten"), std::string::npos);
}

}  // namespace
}  // namespace stepladder
