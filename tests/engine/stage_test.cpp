#include "engine/stage.h"

#include <gtest/gtest.h>

#include <set>

namespace stepladder {
namespace {

DeviceReport machine_with(int major, int minor) {
  DeviceReport report;
  report.gpus.push_back({.name = "Some GPU", .compute_major = major, .compute_minor = minor, .memory_bytes = 1});
  return report;
}

TEST(Stages, EveryOneIsComplete) {
  std::set<std::string> ids;
  for (const Stage& stage : all_stages()) {
    EXPECT_TRUE(ids.insert(stage.id).second) << stage.id << " is there twice";
    EXPECT_EQ(stage.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << stage.id;
    EXPECT_FALSE(stage.title.empty()) << stage.id;
    EXPECT_TRUE(stage.why.ends_with('.')) << stage.id;
    ASSERT_TRUE(stage.apply) << stage.id;
    ASSERT_TRUE(stage.unavailable) << stage.id;
    EXPECT_EQ(&stage_by_id(stage.id), &stage);
  }
}

TEST(Stages, TheFirstIsTheBaselineAndEveryOtherChangesIt) {
  Recipe baseline;
  ASSERT_EQ(all_stages().front().id, "baseline");
  all_stages().front().apply(baseline);
  for (std::size_t i = 1; i < all_stages().size(); ++i) {
    Recipe changed = baseline;
    all_stages()[i].apply(changed);
    EXPECT_NE(difference(baseline, changed), "") << all_stages()[i].id;
    EXPECT_NO_THROW(validate(changed));
    all_stages().front().apply(changed);
    EXPECT_EQ(changed, baseline) << "the baseline does not undo " << all_stages()[i].id;
  }
}

TEST(Stages, UnknownIdNamesTheNearest) {
  try {
    stage_by_id("flash-atention");
    FAIL();
  } catch (const RecipeError& error) {
    EXPECT_STREQ(error.what(), "--stage: \"flash-atention\" is unknown; did you mean flash-attention?");
  }
}

TEST(Stages, AvailabilityByDevice) {
  const Stage& tf32 = stage_by_id("tf32");
  const Stage& bf16 = stage_by_id("bf16");
  EXPECT_NE(tf32.unavailable(DeviceReport{}, "cpu"), "");
  EXPECT_NE(tf32.unavailable(DeviceReport{}, "cuda"), "");
  EXPECT_EQ(tf32.unavailable(machine_with(8, 0), "cuda"), "");
  EXPECT_EQ(tf32.unavailable(machine_with(7, 5), "cuda"),
            "needs compute capability 8.0 (Ampere) or newer; Some GPU has 7.5");
  EXPECT_EQ(bf16.unavailable(DeviceReport{}, "cpu"), "");
  EXPECT_NE(bf16.unavailable(DeviceReport{}, "mps"), "");
  EXPECT_NE(bf16.unavailable(machine_with(7, 0), "cuda"), "");
  for (const char* id : {"baseline", "flash-attention", "fused-adamw"}) {
    EXPECT_EQ(stage_by_id(id).unavailable(DeviceReport{}, "cpu"), "") << id;
  }
}

TEST(Ladder, EachRungHasAllStagesBeforeIt) {
  const std::vector<std::string> ids = {"tf32", "bf16", "flash-attention", "fused-adamw"};
  const LadderPlan plan = plan_ladder(Recipe{}, ids, machine_with(9, 0));
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
  const std::vector<std::string> ids = {"fused-adamw", "baseline", "flash-attention"};
  const LadderPlan plan = plan_ladder(Recipe{}, ids, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 3u);
  EXPECT_EQ(plan.rungs[0].stage, "baseline");
  EXPECT_EQ(plan.rungs[1].stage, "fused-adamw");
  EXPECT_EQ(plan.rungs[2].stage, "flash-attention");
}

TEST(Ladder, SkipsWhatTheDeviceCannotDo) {
  const std::vector<std::string> ids = {"tf32", "flash-attention"};
  const LadderPlan plan = plan_ladder(Recipe{}, ids, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].stage, "flash-attention");
  EXPECT_EQ(plan.rungs[1].recipe.matmul, MatmulPrecision::fp32);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].stage, "tf32");
  EXPECT_NE(plan.skipped[0].reason, "");
}

TEST(Ladder, UnknownAndDoubledStagesAreErrors) {
  for (const std::vector<std::string>& ids :
       {std::vector<std::string>{"nonsense"}, {"bf16", "bf16"}, {"baseline", "baseline"}}) {
    EXPECT_THROW(plan_ladder(Recipe{}, ids, DeviceReport{}), RecipeError);
  }
}

}  // namespace
}  // namespace stepladder
