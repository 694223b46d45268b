#include "engine/rungs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/files/data_error.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

std::vector<PlannedRung> planned(std::initializer_list<const char*> texts) {
  std::vector<PlannedRung> rungs;
  for (const char* text : texts) rungs.push_back(parse_rung(text));
  return rungs;
}

// What parse_rungs says about this text; empty if it reads it.
std::string complaint(const std::string& text) {
  try {
    parse_rungs(text);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

DeviceReport ampere() {
  DeviceReport report;
  report.gpus.push_back({.name = "Some GPU", .compute_major = 9, .compute_minor = 0, .memory_bytes = 1});
  return report;
}

TEST(RungText, SaysStagesNamesAndValues) {
  const std::vector<PlannedRung> rungs =
      parse_rungs("bf16:batch=24, mine:lr=3e-4 ,bf16+compile:grad-accum=2,lr=1e-3:seed=7,big:compile:--d-model=256");
  ASSERT_EQ(rungs.size(), 5u);
  EXPECT_EQ(rungs[0].stages, std::vector<std::string>{"bf16"});
  EXPECT_EQ(rungs[0].values, (decltype(rungs[0].values){{"batch", "24"}}));
  EXPECT_EQ(rungs[1].name, "mine");
  EXPECT_EQ(rungs[1].values, (decltype(rungs[0].values){{"lr", "3e-4"}}));
  EXPECT_EQ(rungs[2].stages, (std::vector<std::string>{"bf16", "compile"}));
  EXPECT_EQ(rungs[2].values, (decltype(rungs[0].values){{"grad_accum", "2"}}));
  EXPECT_EQ(rungs[3].name, "");
  EXPECT_EQ(rungs[3].values.size(), 2u);
  EXPECT_EQ(rungs[4].name, "big");
  EXPECT_EQ(rungs[4].stages, std::vector<std::string>{"compile"});
}

TEST(RungText, WrittenAndReadAgainItIsTheSame) {
  const std::string path = "/a b,c:d=e+f\\g/ x.txt ";
  const std::vector<PlannedRung> rungs = {
      {.stages = {"baseline"}},
      {.stages = {"bf16", "compile"}, .values = {{"batch", "24"}, {"seq", "32"}}},
      {.name = "mine, and: yours=+", .values = {{"data", path}}},
      {.name = "with prompt", .stages = {"tf32"}, .values = {{"sample_prompt", "\n"}}},
      {.values = {{"sample_prompt", "ROMEO: "}, {"lr", "3e-4"}}}};
  const std::vector<PlannedRung> again = parse_rungs(rungs_text(rungs));
  ASSERT_EQ(again.size(), rungs.size()) << rungs_text(rungs);
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    EXPECT_EQ(again[i].name, rungs[i].name);
    EXPECT_EQ(again[i].stages, rungs[i].stages);
    EXPECT_EQ(again[i].values, rungs[i].values);
  }
  EXPECT_EQ(rungs_text(again), rungs_text(rungs));
}

TEST(RungText, AMistakeIsNamedWithItsRungAndField) {
  EXPECT_EQ(complaint("bf16,mine:lr=abc"), "--stages: rung 2 'mine': lr must be a number, not 'abc'");
  EXPECT_EQ(complaint("mine:batsch=3"), "--stages: rung 1 'mine': batsch is unknown; did you mean batch?");
  EXPECT_EQ(complaint("bf16,,tf32"), "--stages: rung 2: the rung is empty; name a stage, or a value like batch=24");
  EXPECT_NE(complaint("flash-atention").find("did you mean flash-attention?"), std::string::npos);
  EXPECT_NE(complaint("flash-atention:batch=3").find("did you mean flash-attention?"), std::string::npos);
  EXPECT_NE(complaint("bf16+flsh:batch=3").find("\"flsh\" is unknown"), std::string::npos);
  EXPECT_NE(complaint("mine").find("changes nothing; add a value"), std::string::npos);
  EXPECT_NE(complaint("bf16:batch").find("'batch' is neither a stage nor a value"), std::string::npos);
  EXPECT_NE(complaint("bf16:batch=2:batch=3").find("batch is set twice"), std::string::npos);
  EXPECT_NE(complaint("bf16+bf16").find("bf16 is named twice"), std::string::npos);
  EXPECT_NE(complaint("bf16:").find("colon"), std::string::npos);
  EXPECT_NE(complaint(""), "");
}

TEST(Ladder, ARungOfOnesOwnHasItsNameAndIsTheNewReferenceForLosses) {
  const LadderPlan plan =
      plan_ladder(Recipe{}, parse_rungs("mine:lr=3e-4,flash-attention+fused-adamw,seed=7:batch=6"), DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 4u);
  EXPECT_EQ(plan.rungs[1].stage, "mine");
  EXPECT_EQ(plan.rungs[1].title, "mine");
  EXPECT_EQ(plan.rungs[1].changed, "lr 0.001 -> 3e-04");
  EXPECT_EQ(plan.rungs[2].stage, "flash-attention+fused-adamw");
  EXPECT_EQ(plan.rungs[2].title, stage_by_id("flash-attention").title + " + " + stage_by_id("fused-adamw").title);
  EXPECT_EQ(plan.rungs[2].recipe.lr, 3e-4);
  EXPECT_EQ(plan.rungs[2].loss_against, 1);
  EXPECT_EQ(plan.rungs[3].stage, "seed=7:batch=6");
  EXPECT_EQ(plan.rungs[3].title, "seed 7, batch 6");
  EXPECT_EQ(plan.rungs[3].asked, 2);
  EXPECT_EQ(plan.rungs[0].asked, -1);
}

TEST(Ladder, AStageMayBeNamedAgainWithOtherValues) {
  const LadderPlan plan =
      plan_ladder(Recipe{}, parse_rungs("fused-adamw:batch=24,fused-adamw:batch=48"), DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 3u);
  EXPECT_EQ(plan.rungs[2].title, stage_by_id("fused-adamw").title + ", batch 48");
  EXPECT_EQ(plan.rungs[2].changed, "batch 24 -> 48");
}

TEST(Ladder, ARungMayBeAnotherModel) {
  const LadderPlan plan = plan_ladder(Recipe{}, parse_rungs("model=gpt2:layers=2"), DeviceReport{});
  EXPECT_EQ(plan.rungs[1].recipe.d_model, 768);
  EXPECT_EQ(plan.rungs[1].recipe.layers, 2);
}

TEST(Ladder, ARungThatItsFilesRefuseIsLeftOutWithTheReason) {
  const PrepareRung prepare = [](const Recipe& recipe) {
    if (recipe.data == "missing.txt") throw DataError("missing.txt does not exist");
    return recipe;
  };
  const LadderPlan plan = plan_ladder(Recipe{}, parse_rungs("mine:data=missing.txt,flash-attention"), DeviceReport{},
                                      Climb::together, prepare);
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].recipe.data, "") << "later rungs don't have it";
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].stage, "mine");
  EXPECT_EQ(plan.skipped[0].asked, 0);
  EXPECT_EQ(plan.skipped[0].reason, "missing.txt does not exist");
}

TEST(Ladder, EachRungHasAllStagesBeforeIt) {
  const std::vector<PlannedRung> ids = planned({"tf32", "bf16", "flash-attention", "fused-adamw"});
  const LadderPlan plan = plan_ladder(Recipe{}, ids, ampere());
  ASSERT_EQ(plan.rungs.size(), 5u);
  EXPECT_TRUE(plan.skipped.empty());
  EXPECT_EQ(plan.rungs[0].stage, "baseline");
  EXPECT_EQ(plan.rungs[0].changed, "");
  EXPECT_EQ(plan.rungs[1].changed, "matmul fp32 -> tf32");
  EXPECT_EQ(plan.rungs[2].changed, "autocast off -> bf16");
  EXPECT_EQ(plan.rungs[3].changed, "attention explicit -> scaled-dot-product");
  EXPECT_EQ(plan.rungs[4].changed, "optimizer adamw -> fused-adamw");
  EXPECT_EQ(plan.rungs[4].recipe.matmul, MatmulPrecision::tf32);
  EXPECT_EQ(plan.rungs[4].recipe.autocast, Autocast::bf16);
  EXPECT_EQ(plan.rungs[4].recipe.attention, Attention::scaled_dot_product);
  EXPECT_EQ(plan.rungs[4].recipe.optimizer, Optimizer::fused_adamw);
  EXPECT_EQ(plan.rungs[0].recipe.device, "auto");  // left for the run to resolve
}

TEST(Ladder, BaselineGoesFirstWhereverItIsNamed) {
  const std::vector<PlannedRung> ids = planned({"fused-adamw", "baseline", "flash-attention"});
  const LadderPlan plan = plan_ladder(Recipe{}, ids, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 3u);
  EXPECT_EQ(plan.rungs[0].stage, "baseline");
  EXPECT_EQ(plan.rungs[1].stage, "fused-adamw");
  EXPECT_EQ(plan.rungs[2].stage, "flash-attention");
}

TEST(Ladder, SkipsWhatTheDeviceCannotDo) {
  const std::vector<PlannedRung> ids = planned({"tf32", "flash-attention"});
  const LadderPlan plan = plan_ladder(Recipe{}, ids, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].stage, "flash-attention");
  EXPECT_EQ(plan.rungs[1].recipe.matmul, MatmulPrecision::fp32);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].stage, "tf32");
  EXPECT_NE(plan.skipped[0].reason, "");
}

// A step is many times slower there, and so is that of every rung above it.
TEST(Ladder, HasBf16OnACpuWithoutItsInstructionsOnlyIfItIsNamed) {
  const auto has_bf16 = [](const LadderPlan& plan) {
    return std::ranges::any_of(plan.rungs, [](const Rung& rung) { return rung.recipe.autocast == Autocast::bf16; });
  };
  Recipe base;
  base.device = "cpu";
  DeviceReport report;
  report.cpu_cores = 2;
  const LadderPlan usual = plan_ladder(base, usual_rungs(), report);
  EXPECT_FALSE(has_bf16(usual));
  const auto left_out = std::ranges::find(usual.skipped, "bf16", &SkippedRung::stage);
  ASSERT_NE(left_out, usual.skipped.end());
  EXPECT_EQ(left_out->reason.for_command_line(), "this CPU has no bf16 instructions; it is trained if it's named");
  EXPECT_TRUE(has_bf16(plan_ladder(base, planned({"bf16"}), report)));
  report.cpu_bf16 = true;
  EXPECT_TRUE(has_bf16(plan_ladder(base, usual_rungs(), report)));
}

TEST(Ladder, SkipsAStageThatTheRecipeHasNoRoomFor) {
  Recipe odd;
  odd.batch = 3;
  DeviceReport report;
  report.cpu_cores = 2;
  const std::vector<PlannedRung> ids = planned({"ddp", "fused-adamw"});
  const LadderPlan plan = plan_ladder(odd, ids, report);
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].stage, "fused-adamw");
  EXPECT_EQ(plan.rungs[1].recipe.nproc, 1);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].reason.for_command_line(), "--nproc: 2 processes do not divide a batch of 3");
}

TEST(Ladder, UnknownAndDoubledStagesAreErrors) {
  EXPECT_THROW(planned({"nonsense"}), RecipeError);
  EXPECT_THROW(planned({"bf16:batch"}), RecipeError);
  EXPECT_THROW(planned({"bf16:batsch=3"}), RecipeError);
  EXPECT_THROW(planned({"bf16:batch=three"}), RecipeError);
  EXPECT_THROW(plan_ladder(Recipe{}, planned({"bf16", "bf16"}), DeviceReport{}), RecipeError);
  const std::vector<PlannedRung> unknown = {{.stages = {"flash"}}};
  EXPECT_THROW(plan_ladder(Recipe{}, unknown, DeviceReport{}), RecipeError);
}

TEST(Ladder, ABatchMayChangeWithARungAndTheRecordSaysSo) {
  const LadderPlan plan = plan_ladder(Recipe{}, planned({"bf16:batch=24", "flash-attention"}), DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 3u);
  EXPECT_EQ(plan.rungs[1].changed, "batch 12 -> 24, autocast off -> bf16");
  EXPECT_EQ(plan.rungs[2].recipe.batch, 24);
}

TEST(Ladder, TheBaselineNamedAgainMeasuresOtherSizesOrTheNoise) {
  const LadderPlan plan = plan_ladder(Recipe{}, planned({"baseline", "baseline", "baseline:seq=32"}), DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 3u);
  EXPECT_EQ(plan.rungs[1].title, "Measured again");
  EXPECT_EQ(plan.rungs[1].changed, "");
  EXPECT_EQ(plan.rungs[2].title, "seq 32");
  EXPECT_EQ(plan.rungs[2].changed, "seq 64 -> 32");
}

TEST(Ladder, ACheckStandsAloneAndSoDoesEveryRungThatIsToClimbAlone) {
  const LadderPlan together = plan_ladder(Recipe{}, planned({"overfit", "flash-attention"}), DeviceReport{});
  ASSERT_EQ(together.rungs.size(), 3u);
  EXPECT_TRUE(together.rungs[1].recipe.overfit);
  EXPECT_FALSE(together.rungs[2].recipe.overfit);
  const auto stands_on = [](const LadderPlan& plan) {
    std::vector<int> rungs;
    for (const Rung& rung : plan.rungs) rungs.push_back(rung.stands_on);
    return rungs;
  };
  EXPECT_EQ(stands_on(together), (std::vector<int>{-1, 0, 0}));
  const std::vector<PlannedRung> three = planned({"flash-attention", "fused-adamw", "compile"});
  EXPECT_EQ(stands_on(plan_ladder(Recipe{}, three, DeviceReport{})), (std::vector<int>{-1, 0, 1, 2}));
  EXPECT_EQ(stands_on(plan_ladder(Recipe{}, three, DeviceReport{}, Climb::alone)), (std::vector<int>{-1, 0, 0, 0}));

  const LadderPlan alone =
      plan_ladder(Recipe{}, planned({"flash-attention", "fused-adamw"}), DeviceReport{}, Climb::alone);
  ASSERT_EQ(alone.rungs.size(), 3u);
  EXPECT_EQ(alone.rungs[2].recipe.attention, Attention::explicit_scores);
  EXPECT_EQ(alone.rungs[2].changed, "optimizer adamw -> fused-adamw");
}

TEST(Ladder, ALossIsHeldAgainstTheLastRungThatChangedTheMaths) {
  const std::vector<PlannedRung> stages =
      planned({"flash-attention", "overfit", "weight-tying", "compile", "gpt3-adamw", "fused-adamw"});
  const auto against = [&](Climb climb) {
    std::vector<int> rungs;
    for (const Rung& rung : plan_ladder(Recipe{}, stages, DeviceReport{}, climb).rungs)
      rungs.push_back(rung.loss_against);
    return rungs;
  };
  EXPECT_EQ(against(Climb::together), (std::vector<int>{0, 0, 0, 0, 3, 3, 5}));
  EXPECT_EQ(against(Climb::alone), (std::vector<int>{0, 0, 0, 0, 0, 0, 0}));
}

TEST(Ladder, ItStartsBelowTheStagesThatItClimbsTo) {
  Recipe published;
  apply_preset(published, "gpt2");
  const LadderPlan systems = plan_ladder(published, planned({"flash-attention"}), DeviceReport{});
  EXPECT_TRUE(systems.rungs[0].recipe.tied_head);
  const LadderPlan maths = plan_ladder(published, planned({"weight-tying", "init-scaling"}), DeviceReport{});
  ASSERT_EQ(maths.rungs.size(), 3u);
  EXPECT_FALSE(maths.rungs[0].recipe.tied_head);
  EXPECT_EQ(maths.rungs[0].recipe.init, Init::pytorch);
  EXPECT_EQ(parameter_count(maths.rungs[0].recipe) - parameter_count(maths.rungs[1].recipe), 50257 * 768);
  EXPECT_EQ(maths.rungs[2].recipe.init, Init::gpt2);
}

TEST(LadderPlan, KernelsAreLeftOutOfRungsThatHaveThem) {
  Recipe base;
  base.device = "cpu";
  base.without_kernel = "gelu+adamw";
  const auto plan = [&](const char* stage) { return plan_ladder(base, planned({stage}), {}, Climb::together, {}); };
  EXPECT_EQ(plan("compile-max").rungs.back().recipe.without_kernel, "gelu+adamw");
  EXPECT_THROW(plan("compile"), RecipeError);
  base.without_kernel = "gelu+";
  EXPECT_THROW(validate(base), RecipeError);
  base.without_kernel = "gelo";
  try {
    validate(base);
    FAIL() << "there is no such kernel";
  } catch (const RecipeError& error) {
    EXPECT_EQ(error.field(), "without_kernel");
    EXPECT_NE(std::string(error.what()).find("gelu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace stepladder
