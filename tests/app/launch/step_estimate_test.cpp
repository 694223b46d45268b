#include "app/launch/step_estimate.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

HardwareTable table() {
  return HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
}

TEST(StepEstimate, IsFlopsOverAModestShareOfThePeak) {
  DeviceReport report;
  report.gpus.push_back({.name = "NVIDIA A100-SXM4-40GB", .compute_major = 8});
  Recipe recipe;
  apply_preset(recipe, "gpt2");
  recipe.matmul = MatmulPrecision::tf32;
  const StepEstimate estimate = estimate_step(recipe, report, table(), {});
  // 4,096 tokens x 859.9 MFLOP at 20 % of 156 TFLOP/s, and 4 GB at 1,555 GB/s.
  EXPECT_NEAR(estimate.seconds, 0.113 + 0.0026, 0.01);
  EXPECT_NE(estimate.basis.find("3.5"), std::string::npos) << estimate.basis;
  EXPECT_NE(estimate.basis.find("TFLOP a step at 20 % of a peak of 156 TFLOP/s"), std::string::npos) << estimate.basis;
}

TEST(StepEstimate, GuessesAnUnknownCpuAndSaysSo) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  report.cpu_cores = 2;
  report.cpu_capability = "AVX2";
  Recipe recipe;
  recipe.vocab = 256;
  const StepEstimate small = estimate_step(recipe, report, table(), {});
  EXPECT_GT(small.seconds, 0.001);
  EXPECT_LT(small.seconds, 1);
  EXPECT_NE(small.basis.find("guessed peak"), std::string::npos);
  recipe.steps = 10;
  EXPECT_DOUBLE_EQ(estimate_seconds({recipe, recipe}, report, table(), {}), 20 * small.seconds);
  recipe.vocab = 0;
  EXPECT_TRUE(is_missing(estimate_step(recipe, report, table(), {}).seconds)) << "its size isn't known";
  EXPECT_TRUE(is_missing(estimate_seconds({recipe}, report, table(), {})));
}

// A finished run of `recipe` whose steps took `dt_ms`.
struct Done {
  Done(Recipe recipe, const DeviceReport& report, double dt_ms) {
    recipe.device = report.resolve(recipe.device);  // as a run records it
    recipe.threads = report.cpu_cores;
    run.source = "launched";
    run.status = RunStatus::finished;
    run.hardware = report.hardware(report.resolve(recipe.device));
    run.tokens_per_step = recipe.tokens_per_step();
    run.recipe = to_json(recipe);
    summary.dt_ms_median = dt_ms;
  }
  Run run;
  Summary summary;
};

TEST(StepEstimate, StepsMeasuredBesideOtherProgramsAreNotSlowedDownAgain) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  report.cpu_cores = 2;
  Recipe recipe;
  recipe.vocab = 256;
  recipe.steps = 10;
  Done done(recipe, report, 800);
  done.run.params = parameter_count(recipe);
  done.summary.watched_steps = done.summary.disturbed_steps = 10;
  const std::vector<MeasuredRun> runs{{&done.run, &done.summary, nullptr}};
  const StepEstimate same = estimate_step(recipe, report, table(), runs);
  EXPECT_TRUE(same.is_disturbed);
  EXPECT_EQ(basis_text(same), ", by 1 run of this recipe here, beside other programs");
  EXPECT_NEAR(seconds_of(std::vector{same}, 4), 8, 1e-9);
  recipe.batch *= 2;  // what the others took of it is unknown
  const StepEstimate other = estimate_step(recipe, report, table(), runs);
  const double guess = estimate_step(recipe, report, table(), {}).seconds;
  EXPECT_FALSE(other.is_disturbed || other.is_measured);
  EXPECT_EQ(other.seconds, guess);
  EXPECT_NEAR(seconds_of(std::vector{same, other}, 4), 8 + 4 * 10 * guess, 1e-9);
}

TEST(StepEstimate, TakesTheProjectsOwnRunsOfTheRecipe) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  report.cpu_cores = 2;
  Recipe recipe;
  recipe.vocab = 256;
  recipe.steps = 10;
  Recipe other_seed = recipe, other = recipe;
  other_seed.seed += 1;
  other_seed.steps = 500;
  other.layers += 2;
  const Done first(recipe, report, 700), second(other_seed, report, 900), third(other, report, 5000);
  const std::vector<MeasuredRun> runs{{&first.run, &first.summary, nullptr},
                                      {&second.run, &second.summary, nullptr},
                                      {&third.run, &third.summary, nullptr}};
  const StepEstimate step = estimate_step(recipe, report, table(), runs);
  EXPECT_TRUE(step.is_measured);
  EXPECT_NEAR(step.seconds, 0.8, 1e-9);
  EXPECT_EQ(step.basis, "2 runs of this recipe here");
  EXPECT_NEAR(estimate_seconds({recipe}, report, table(), runs), 8, 1e-9);
  // What wasn't measured is guessed, and scaled by how far the guess is off for other runs.
  Recipe larger = recipe;
  larger.d_model *= 2;
  const auto guess = [&](const Recipe& of) { return estimate_step(of, report, table(), {}).seconds; };
  const double off = median_of({0.7 / guess(recipe), 0.9 / guess(recipe), 5 / guess(other)});
  EXPECT_NEAR(estimate_seconds({recipe, larger}, report, table(), runs), 8 + 10 * guess(larger) * off, 1e-9);
  EXPECT_EQ(basis_text(estimate_step(larger, report, table(), runs)), ": a rough estimate from other runs here");
  report.cpu_name = "Another";
  EXPECT_FALSE(estimate_step(recipe, report, table(), runs).is_measured) << "another machine";
}

TEST(StepEstimate, TakesRunsOfTheSameModelWithOtherStages) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  report.cpu_cores = 2;
  Recipe recipe;
  recipe.vocab = 256;
  const double guess = estimate_step(recipe, report, table(), {}).seconds;
  Recipe planned = recipe;
  planned.compile = Compile::max;
  planned.data = "another.txt";
  Done done(planned, report, 3000 * guess);
  done.run.params = parameter_count(planned);
  const std::vector<MeasuredRun> runs{{&done.run, &done.summary, nullptr}};
  const StepEstimate step = estimate_step(recipe, report, table(), runs);
  EXPECT_TRUE(step.is_measured);
  EXPECT_NEAR(step.seconds, 3 * guess, 1e-9);
  EXPECT_EQ(basis_text(step), ", by runs of this model with other stages here");
  Recipe with_bf16 = recipe;
  with_bf16.autocast = Autocast::bf16;
  EXPECT_FALSE(estimate_step(with_bf16, report, table(), runs).is_measured) << "another precision";
  planned.data.clear();
  EXPECT_EQ(estimate_step(planned, report, table(), runs).basis, "1 run of this recipe here") << "on any data";
}

TEST(Bf16, IsJudgedByThisProjectsRunsBeforeTheProbe) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  report.cpu_cores = 2;
  report.cpu_bf16 = true;
  Recipe below, with;
  with.autocast = Autocast::bf16;
  EXPECT_EQ(why_not_bf16("cpu", report, table(), {}), "whether bf16 pays on this CPU wasn't measured yet");
  for (const double dt_ms : {20.0, 40.0}) {
    Done before(below, report, 30), after(with, report, dt_ms);
    after.run.precision = "bf16";
    const std::vector<MeasuredRun> runs{{&before.run, &before.summary, nullptr}, {&after.run, &after.summary, nullptr}};
    EXPECT_EQ(why_not_bf16("cpu", report, table(), runs),
              dt_ms < 30 ? "" : "0.75 x as fast as the rung below it here, by 1 run of each");
  }
}

TEST(SlowerHere, NeedsTwoQuietRunsOfBothAndAClearDifference) {
  DeviceReport report;
  report.cpu_name = "Unheard-of";
  Recipe below, above;
  above.compile = Compile::max;
  std::vector<Done> done;
  const auto words = [&] {
    std::vector<MeasuredRun> runs;
    for (const Done& each : done) runs.push_back({&each.run, &each.summary, nullptr});
    const std::vector<Rung> rungs{{.recipe = below}, {.recipe = above, .stands_on = 0}};
    return slower_here(rungs, report, runs);
  };
  done.emplace_back(below, report, 31);
  done.emplace_back(above, report, 36);
  done.emplace_back(above, report, 36.1);
  EXPECT_EQ(words(), std::vector<std::string>(2)) << "a single run has no noise";
  done.emplace_back(below, report, 31.1);
  EXPECT_EQ(words()[1], "0.86 x as fast as the rung below it here, by 2 runs of each");
  done.emplace_back(below, report, 40);
  EXPECT_EQ(words()[1], "") << "noise";
  // A larger batch takes longer steps, and an earlier rung needn't be the one below.
  Recipe larger = below;
  larger.batch *= 3;
  done.clear();
  for (const double off : {0.0, 0.1}) {
    done.emplace_back(below, report, 31 + off);
    done.emplace_back(above, report, 20 + off);
    done.emplace_back(larger, report, 60 + off);
  }
  std::vector<MeasuredRun> runs;
  for (const Done& each : done) runs.push_back({&each.run, &each.summary, nullptr});
  std::vector<Rung> rungs{{.recipe = below}, {.recipe = above, .stands_on = 0}, {.recipe = larger, .stands_on = 0}};
  EXPECT_EQ(slower_here(rungs, report, runs), std::vector<std::string>(3));
  rungs[2].stands_on = 1;  // 20 ms for a third of the tokens
  EXPECT_EQ(slower_here(rungs, report, runs), std::vector<std::string>(3)) << "it has the same throughput";
}

}  // namespace
}  // namespace stepladder
