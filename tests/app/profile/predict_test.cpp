// What `--scale` and `--part` accept, and the predicted steps of a ladder's rungs.
#include "app/profile/predict.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/exit_status.h"
#include "app/profile/ladder_forecast.h"
#include "engine/stage.h"
#include "tests/app/profile/traced_recipe.h"

namespace stepladder {
namespace {

std::string problem_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(PredictOptions, every_kind_has_a_word_of_its_own) {
  for (const OperatorKind kind : all_operator_kinds) {
    for (const std::string& word : {kind_key(kind), std::string(to_string(kind))}) {
      const std::vector<WorkChange> read = parse_scales({word + "=0.5"});
      ASSERT_EQ(read.size(), 1U) << word;
      EXPECT_EQ(read[0].kinds, std::vector{kind}) << word;
      EXPECT_DOUBLE_EQ(read[0].factor, 0.5);
    }
  }
  EXPECT_EQ(parse_scales({"optimiser=0", "gelu=1"}).size(), 2U);
}

TEST(PredictOptions, parts_and_what_is_refused) {
  const std::vector<WorkChange> read = parse_parts({"mlp/gelu=fused,attention=0.5"});
  ASSERT_EQ(read.size(), 2U);
  EXPECT_TRUE(read[0].at_most);
  EXPECT_DOUBLE_EQ(read[0].factor, 0);
  EXPECT_EQ(read[0].part, ModelPart::mlp);
  EXPECT_TRUE(read[1].kinds.empty());
  for (const char* const text :
       {"", "gelu", "=1", "gelu=", "gelu=1e3", "gelu=-0.1", "gelu=nan", "gelu=inf", "warp=1", "gelu=1,gelu=1"})
    EXPECT_NE(problem_of([&] { parse_scales({text}); }), "") << text;
  for (const char* const text : {"mlp", "wheel=1", "mlp/=1", "mlp/warp=1", "mlp=1,mlp=2"})
    EXPECT_NE(problem_of([&] { parse_parts({text}); }), "") << text;
}

TEST(PredictAll, what_buys_nothing_comes_last) {
  RunStore store = RunStore::in_memory();
  Recipe base;
  base.vocab = 256;
  base.threads = 2;
  keep_traced_step(store, base);
  const PredictionOverview overview = predict_all(find_subject(store, "trace:1"), nullptr);
  std::vector<int> places;
  for (const PredictionAnswer& each : overview.stages) {
    const bool is_known = each.step.bound != Bound::unknown;
    places.push_back(!is_known ? 1 : each.step.factor >= 1.005 ? 0 : 2);
  }
  EXPECT_TRUE(std::ranges::is_sorted(places));
  EXPECT_EQ(places.front(), 0);
  EXPECT_EQ(places.back(), 2);
  EXPECT_TRUE(std::ranges::any_of(overview.stages, changes_nothing));
}

// A step of a ResNet on one of several GPUs, of which nobody knows the recipe.
void keep_convolutions(RunStore& store) {
  StepSlices slices{.step = 1, .length_ns = 10'000'000};
  slices.names = {"aten::cudnn_convolution", "nccl:all_reduce"};
  slices.lanes = {{"stream 7", true}};
  slices.rows = {
      {.slices = {{.duration_ns = 3'000'000, .name = 0, .kind = OperatorKind::convolution},
                  {.start_ns = 3'000'000, .duration_ns = 7'000'000, .name = 1, .kind = OperatorKind::communication}}}};
  TracedProcess process;
  process.profile = {.on_gpu = true, .has_steps = true, .ranks = 1, .calls = 2, .steps = {{.step = 1, .dt_ms = 10}}};
  process.profile.operators = {
      {.time = {.part = "forward", .name = "aten::cudnn_convolution", .calls = 1, .self_ms = 3}, .busy_ms = 3},
      {.time = {.part = "backward", .name = "nccl:all_reduce", .calls = 1, .self_ms = 7}, .busy_ms = 7}};
  process.kept = {pack(slices)};
  keep_trace(store.traces(), {.name = "resnet", .format = "kineto"}, process);
}

TEST(PredictAll, proposes_what_the_trace_has_something_for) {
  RunStore store = RunStore::in_memory();
  keep_convolutions(store);
  const PredictionOverview overview = predict_all(find_subject(store, "trace:1"), nullptr);
  for (const PredictionAnswer& each : overview.stages)
    for (const char* of_a_gpt : {"weight-tying", "gpt3-adamw", "fused-adamw", "compile-max"})
      EXPECT_NE(each.stage, of_a_gpt) << each.step.why_unknown;
  EXPECT_EQ(overview.largest,
            "The largest part of this step is communication, 70 %: without it, a step would be at most 3.33 x as fast. "
            "No stage here shortens it. People overlap it with the backward pass, send gradients in bf16, or send them "
            "less often by accumulating them.");
  store = RunStore::in_memory();
  Recipe base;
  base.vocab = 256;
  keep_traced_step(store, base);
  const std::string ours = predict_all(find_subject(store, "trace:1"), nullptr).largest;
  EXPECT_TRUE(ours.starts_with("The largest part of this step is matrix products, 60 %")) << ours;
  EXPECT_NE(ours.find("Stages that may shorten it: "), std::string::npos) << ours;
}

TEST(LadderForecast, predicts_rungs_that_were_not_measured) {
  RunStore store = RunStore::in_memory();
  Recipe base;
  base.vocab = 256;
  base.threads = 2;
  keep_traced_step(store, base);
  std::vector<Recipe> rungs(4, base);
  for (Recipe& rung : rungs) rung.threads = 0;
  stage_by_id("fused-adamw").apply(rungs[1]);
  rungs[2].batch = 3;  // more than a stage
  stage_by_id("cosine-lr").apply(rungs[3]);
  const LadderForecast forecast = forecast_ladder(store, rungs, 2);
  ASSERT_TRUE(forecast.trace);
  ASSERT_EQ(forecast.rungs.size(), 4U);
  EXPECT_EQ(forecast.rungs[0].bound, Bound::unknown);
  EXPECT_EQ(forecast.rungs[1].bound, Bound::estimate);
  EXPECT_LT(forecast.rungs[1].ms, 10);
  EXPECT_GT(forecast.rungs[1].ms, 6);
  EXPECT_EQ(forecast.rungs[2].bound, Bound::unknown);
  EXPECT_NEAR(forecast.rungs[3].ms, 10, 1e-6);
  rungs.front().batch = 5;
  EXPECT_FALSE(forecast_ladder(store, rungs, 2).trace) << "no trace of that recipe";
}

}  // namespace
}  // namespace stepladder
