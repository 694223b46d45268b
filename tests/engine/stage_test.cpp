#include "engine/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace stepladder {
namespace {

std::vector<PlannedStage> planned(std::initializer_list<const char*> texts) {
  std::vector<PlannedStage> stages;
  for (const char* text : texts) stages.push_back(parse_planned_stage(text));
  return stages;
}

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
    ASSERT_TRUE(stage.is_on) << stage.id;
    ASSERT_TRUE(stage.unavailable) << stage.id;
    EXPECT_EQ(&stage_by_id(stage.id), &stage);
  }
}

TEST(Stages, TheFirstIsTheBaselineAndEveryOtherChangesItAndIsUndone) {
  Recipe baseline;
  ASSERT_EQ(all_stages().front().id, "baseline");
  all_stages().front().apply(baseline);
  EXPECT_EQ(baseline, Recipe{});
  for (std::size_t i = 1; i < all_stages().size(); ++i) {
    const Stage& stage = all_stages()[i];
    if (stage.id == "compile-max") continue;  // unavailable everywhere so far
    Recipe changed = baseline;
    stage.apply(changed);
    EXPECT_NE(difference(baseline, changed), "") << stage.id;
    EXPECT_FALSE(stage.is_on(baseline)) << stage.id;
    EXPECT_TRUE(stage.is_on(changed)) << stage.id;
    EXPECT_NO_THROW(validate(changed));
    EXPECT_EQ(changed.tokens_per_step(), baseline.tokens_per_step()) << stage.id;
    stage.undo(changed);
    if (stage.id == "grad-accumulation") continue;  // recipes may start with a batch in pieces
    EXPECT_EQ(changed, baseline) << "nothing undoes " << stage.id;
  }
}

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A stage's file lists the words by which other people's logs name it.
TEST(Stages, EveryOneIsFoundByItsOwnWords) {
  ASSERT_EQ(known_stages().size(), all_stages().size());
  for (const KnownStage& known : known_stages()) {
    const auto named = [](std::string words) {
      std::replace(words.begin(), words.end(), '+', ' ');
      return known_stage({.title = "and then " + words, .source = "imported"}, known_stages());
    };
    for (const std::string& words : known.words) EXPECT_EQ(named(words), known.id) << words;
    EXPECT_EQ(known_stage({.stage = known.id, .source = "imported"}, known_stages()), known.id);
    EXPECT_EQ(known.words.empty(), known.id == "bf16-matmul") << "no log of others names that one: " << known.id;
  }
  const std::vector<KnownStage> one_more{{.id = "quantum-cache", .words = {"quantum"}}};
  EXPECT_EQ(known_stage({.title = "Quantum caching", .source = "imported"}, one_more), "quantum-cache");
  EXPECT_EQ(known_stage({.title = "Flash attention", .source = "imported"}, one_more), "");
}

// A stage is one file and one line: its id in another place would be a second list.
TEST(Stages, NoOtherFileOfStorageOrTrainerNamesOne) {
  const std::filesystem::path root(STEPLADDER_SOURCE_DIR);
  int files = 0;
  for (const char* folder : {"storage", "engine/trainer"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      ++files;
      std::istringstream lines(content(entry.path()));
      for (std::string line; std::getline(lines, line);) {
        const std::string code = line.substr(0, line.find("//"));
        for (const Stage& stage : all_stages()) {
          // Ids of one word are also names of precisions and of recipe values.
          if (stage.id.find('-') == std::string::npos) continue;
          EXPECT_EQ(code.find('"' + stage.id + '"'), std::string::npos) << entry.path() << ": " << line;
        }
      }
    }
  }
  EXPECT_GT(files, 100);
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
  EXPECT_NE(tf32.unavailable(Recipe{}, DeviceReport{}, "cpu"), "");
  EXPECT_NE(tf32.unavailable(Recipe{}, DeviceReport{}, "cuda"), "");
  EXPECT_EQ(tf32.unavailable(Recipe{}, machine_with(8, 0), "cuda"), "");
  EXPECT_EQ(tf32.unavailable(Recipe{}, machine_with(7, 5), "cuda"),
            "needs compute capability 8.0 (Ampere) or newer; Some GPU has 7.5");
  EXPECT_EQ(bf16.unavailable(Recipe{}, DeviceReport{}, "cpu"), "");
  EXPECT_NE(bf16.unavailable(Recipe{}, DeviceReport{}, "mps"), "");
  EXPECT_NE(bf16.unavailable(Recipe{}, machine_with(7, 0), "cuda"), "");
  for (const char* id : {"baseline", "flash-attention", "fused-adamw"}) {
    EXPECT_EQ(stage_by_id(id).unavailable(Recipe{}, DeviceReport{}, "cpu"), "") << id;
  }
}

TEST(Stages, CompileCapturesOnAGpuWhatOneProcessDoes) {
  const Stage& compile = stage_by_id("compile");
  DeviceReport report;
  report.step_capture_note = "built without CUDA's headers";
  EXPECT_EQ(compile.unavailable(Recipe{.nproc = 2}, report, "cpu"), "");
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "cuda"), "no usable NVIDIA GPU");
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "mps"), "made for CPUs and NVIDIA GPUs; this run is on mps");
  report = machine_with(7, 0);
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "cuda"), "");
  EXPECT_EQ(compile.unavailable(Recipe{.nproc = 2}, report, "cuda"),
            "a captured step cannot exchange gradients with other processes (--nproc)");
  report.step_capture_note = "built without CUDA's headers";
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "cuda"), "built without CUDA's headers");
}

TEST(Stages, DataParallelNeedsTwoOfWhatItRunsOn) {
  const Stage& ddp = stage_by_id("ddp");
  DeviceReport report;
  report.cpu_cores = 1;
  EXPECT_EQ(ddp.unavailable(Recipe{}, report, "cpu"), "needs two CPU cores");
  report.cpu_cores = 2;
  EXPECT_EQ(ddp.unavailable(Recipe{}, report, "cpu"), "");
  report.process_groups_note = "built without";
  EXPECT_EQ(ddp.unavailable(Recipe{}, report, "cpu"), "built without");
  DeviceReport gpus = machine_with(9, 0);
  EXPECT_EQ(ddp.unavailable(Recipe{}, gpus, "cuda"), "needs two GPUs");
  gpus.gpus.push_back(gpus.gpus.front());
  EXPECT_EQ(ddp.unavailable(Recipe{}, gpus, "cuda"), "");
  gpus.gpu_process_groups_note = "built without NCCL";
  EXPECT_EQ(ddp.unavailable(Recipe{}, gpus, "cuda"), "built without NCCL");
  EXPECT_EQ(ddp.unavailable(Recipe{.compile = Compile::on}, gpus, "cuda"),
            "a captured step (compile) cannot exchange gradients");
  EXPECT_NE(ddp.unavailable(Recipe{}, DeviceReport{}, "mps"), "");
}

TEST(Ladder, EachRungHasAllStagesBeforeIt) {
  const std::vector<PlannedStage> ids = planned({"tf32", "bf16", "flash-attention", "fused-adamw"});
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
  const std::vector<PlannedStage> ids = planned({"fused-adamw", "baseline", "flash-attention"});
  const LadderPlan plan = plan_ladder(Recipe{}, ids, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 3u);
  EXPECT_EQ(plan.rungs[0].stage, "baseline");
  EXPECT_EQ(plan.rungs[1].stage, "fused-adamw");
  EXPECT_EQ(plan.rungs[2].stage, "flash-attention");
}

TEST(Ladder, SkipsWhatTheDeviceCannotDo) {
  const std::vector<PlannedStage> ids = planned({"tf32", "flash-attention"});
  const LadderPlan plan = plan_ladder(Recipe{}, ids, DeviceReport{});
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].stage, "flash-attention");
  EXPECT_EQ(plan.rungs[1].recipe.matmul, MatmulPrecision::fp32);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].stage, "tf32");
  EXPECT_NE(plan.skipped[0].reason, "");
}

TEST(Ladder, SkipsAStageThatTheRecipeHasNoRoomFor) {
  Recipe odd;
  odd.batch = 3;
  DeviceReport report;
  report.cpu_cores = 2;
  const std::vector<PlannedStage> ids = planned({"ddp", "fused-adamw"});
  const LadderPlan plan = plan_ladder(odd, ids, report);
  ASSERT_EQ(plan.rungs.size(), 2u);
  EXPECT_EQ(plan.rungs[1].stage, "fused-adamw");
  EXPECT_EQ(plan.rungs[1].recipe.nproc, 1);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].reason, "--nproc: 2 processes do not divide a batch of 3");
}

TEST(Ladder, UnknownAndDoubledStagesAreErrors) {
  EXPECT_THROW(planned({"nonsense"}), RecipeError);
  EXPECT_THROW(planned({"bf16:batch"}), RecipeError);
  EXPECT_THROW(planned({"bf16:batsch=3"}), RecipeError);
  EXPECT_THROW(planned({"bf16:batch=three"}), RecipeError);
  EXPECT_THROW(plan_ladder(Recipe{}, planned({"bf16", "bf16"}), DeviceReport{}), RecipeError);
  const std::vector<PlannedStage> unknown = {{.stage = "flash"}};
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
  EXPECT_EQ(plan.rungs[2].title, "Other sizes");
  EXPECT_EQ(plan.rungs[2].changed, "seq 64 -> 32");
}

TEST(Ladder, ACheckStandsAloneAndSoDoesEveryRungThatIsToClimbAlone) {
  const LadderPlan together = plan_ladder(Recipe{}, planned({"overfit", "flash-attention"}), DeviceReport{});
  ASSERT_EQ(together.rungs.size(), 3u);
  EXPECT_TRUE(together.rungs[1].recipe.overfit);
  EXPECT_FALSE(together.rungs[2].recipe.overfit);

  const LadderPlan alone =
      plan_ladder(Recipe{}, planned({"flash-attention", "fused-adamw"}), DeviceReport{}, Climb::alone);
  ASSERT_EQ(alone.rungs.size(), 3u);
  EXPECT_EQ(alone.rungs[2].recipe.attention, Attention::explicit_scores);
  EXPECT_EQ(alone.rungs[2].changed, "optimizer adamw -> fused-adamw");
}

TEST(Ladder, ALossIsHeldAgainstTheLastRungThatChangedTheMaths) {
  const std::vector<PlannedStage> stages =
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

}  // namespace
}  // namespace stepladder
