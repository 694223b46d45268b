#include "storage/analysis/batch_split.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

// A machine with known times: t = a + b B, and a stage that makes both 1.5 times as fast.
double before(double tokens) {
  return 20 + 0.01 * tokens;
}
double after(double tokens) {
  return before(tokens) / 1.5;
}

TEST(BatchSplit, a_third_run_tells_the_change_from_the_batch) {
  const BatchPoint base{1, 2048, before(2048)};
  const BatchPoint run{2, 6144, after(6144)};
  const double speedup = 3 * base.dt_ms / run.dt_ms;
  for (const ThirdPoint& third :
       {ThirdPoint{{3, 2048, after(2048)}, ThirdIs::like_run}, ThirdPoint{{3, 4096, after(4096)}, ThirdIs::like_run},
        ThirdPoint{{3, 6144, before(6144)}, ThirdIs::like_base},
        ThirdPoint{{3, 1024, before(1024)}, ThirdIs::like_base}}) {
    const auto split = split_gain(base, run, third);
    ASSERT_TRUE(split);
    EXPECT_EQ(split->third, 3);
    EXPECT_NEAR(split->equal_batch_low, 1.5, 1e-9);
    EXPECT_EQ(split->equal_batch_low, split->equal_batch_high);
    EXPECT_NEAR(split->equal_batch_low * split->bigger_batch_low, speedup, 1e-9);
    EXPECT_DOUBLE_EQ(split->tokens_ratio / split->step_time_ratio, speedup);
  }
  EXPECT_EQ(split_gain(base, run, ThirdPoint{{3, 2048, after(2048)}, ThirdIs::like_run})->sentence,
            "6,144 / 2,048 tokens a step = 3, 54.29 / 40.48 ms = 1.341: 2.24 x in all. Run 3 is the same at 2,048 "
            "tokens: 26.99 ms. So 40.48 / 26.99 = 1.50 x at equal batch, and 1.49 x by the batch.");
}

TEST(BatchSplit, two_runs_alone_give_bounds_that_hold_the_truth) {
  for (const double tokens : {6144.0, 512.0}) {  // bigger, and smaller
    const BatchPoint base{1, 2048, before(2048)};
    const BatchPoint run{2, tokens, after(tokens)};
    const auto split = split_gain(base, run);
    ASSERT_TRUE(split);
    EXPECT_FALSE(split->third);
    EXPECT_LT(split->equal_batch_low, 1.5);
    EXPECT_GT(split->equal_batch_high, 1.5);
    const double speedup = split->tokens_ratio / split->step_time_ratio;
    EXPECT_NEAR(split->equal_batch_low * split->bigger_batch_high, speedup, 1e-12);
    EXPECT_NEAR(split->equal_batch_high * split->bigger_batch_low, speedup, 1e-12);
    EXPECT_NE(split->sentence.find("Two runs can't separate"), std::string::npos);
  }
  // All proportional: the upper bound is true; all fixed: the lower.
  EXPECT_DOUBLE_EQ(split_gain({1, 100, 10}, {2, 200, 20})->equal_batch_high, 1);
  EXPECT_DOUBLE_EQ(split_gain({1, 100, 10}, {2, 200, 10})->equal_batch_low, 1);
}

TEST(BatchSplit, there_is_nothing_to_split) {
  EXPECT_FALSE(split_gain({1, 100, 10}, {2, 100, 5}));
  EXPECT_FALSE(split_gain({1, 0, 10}, {2, 100, 5}));
  EXPECT_FALSE(split_gain({1, 100, missing}, {2, 200, 5}));
  // A third run that implies a step of negative time is ignored.
  EXPECT_FALSE(split_gain({1, 100, 10}, {2, 1000, 50}, ThirdPoint{{3, 900, 20}, ThirdIs::like_run})->third);
}

RunAndSummary measured(RunId id, std::int64_t tokens, double dt_ms, std::string stage, std::string recipe = "") {
  RunAndSummary run;
  run.run.id = id;
  run.run.ladder = 1;
  run.run.stage = std::move(stage);
  run.run.tokens_per_step = tokens;
  run.run.recipe = std::move(recipe);
  run.summary.dt_ms_median = dt_ms;
  return run;
}

TEST(ThirdPoint, is_one_of_the_ladder_that_differs_in_its_batch_alone) {
  const RunAndSummary base = measured(1, 2048, 40, "baseline", R"({"batch":2,"tied_head":false})");
  const RunAndSummary run = measured(2, 6144, 54, "bf16", R"({"batch":6,"tied_head":true})");
  const RunAndSummary other_stage = measured(3, 4096, 30, "tf32", R"({"batch":4,"tied_head":true,"matmul":"tf32"})");
  const RunAndSummary nearer = measured(4, 4096, 45, "bf16", R"({"batch":4,"tied_head":true})");
  const RunAndSummary exact = measured(5, 2048, 27, "bf16", R"({"batch":2,"tied_head":true,"seed":5})");
  RunAndSummary elsewhere = exact;
  elsewhere.run.ladder = 9;
  const auto of = [&](const std::vector<RunAndSummary>& others) { return third_point(base, run, others); };
  EXPECT_FALSE(of({base, run, other_stage, elsewhere}));
  EXPECT_EQ(of({nearer})->point.run, 4);
  EXPECT_EQ(of({nearer, exact})->point.run, 5);
  EXPECT_EQ(of({exact, nearer})->point.run, 5);
  EXPECT_EQ(of({exact})->is, ThirdIs::like_run);
  EXPECT_EQ(of({measured(6, 6144, 80, "baseline", R"({"batch":6,"tied_head":false})")})->is, ThirdIs::like_base);

  // An import has no recipe.
  const RunAndSummary imported = measured(2, 6144, 54, "speed up 4");
  EXPECT_EQ(third_point(base, imported, std::vector{measured(7, 2048, 27, "speed up 4")})->point.run, 7);
  EXPECT_FALSE(third_point(base, imported, std::vector{measured(7, 2048, 27, "speed up 5")}));
}

}  // namespace
}  // namespace stepladder
