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
