#include "app/run_filter.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

bool accepts(const std::string& expression) {
  Run run;
  run.name = "nano on text: Fused AdamW";
  run.stage = "fused-adamw";
  run.status = RunStatus::finished;
  Summary summary;
  summary.steps = 60;
  summary.tokens_per_s = 31'000;
  return RunFilter(expression).accepts(run, summary);
}

TEST(RunFilter, WordsAndConditionsMustAllHold) {
  EXPECT_TRUE(accepts(""));
  EXPECT_TRUE(accepts("NANO"));
  EXPECT_TRUE(accepts("nano status=finished tokens_per_s>20000"));
  EXPECT_FALSE(accepts("nano status=failed"));
  EXPECT_FALSE(accepts("nano tokens_per_s>40000"));
  EXPECT_TRUE(accepts("steps<=60 steps>=60 steps=60 steps!=61"));
  EXPECT_TRUE(accepts("stage~adamw"));
  EXPECT_FALSE(accepts("loss_last<5"));  // unknown isn't less
  EXPECT_TRUE(accepts("loss_last=null mfu=null"));
  EXPECT_TRUE(accepts("steps!=null"));
  EXPECT_FALSE(accepts("loss_last~null"));
}

TEST(RunFilter, LooksAtTheRecipeAndAtWhatUsersSaid) {
  stepladder::Run run;
  run.name = "nano";
  run.recipe = R"({"batch": 12, "optimizer": "adamw"})";
  const Curation curation{.tags = {"fast", "Night"}, .note = "the good one", .pinned = true};
  const auto holds = [&](const std::string& expression) {
    return RunFilter(expression).accepts(run, {}, {}, curation);
  };
  EXPECT_TRUE(holds("batch=12 optimizer=adamw"));
  EXPECT_TRUE(holds("batch>8"));
  EXPECT_FALSE(holds("batch>12"));
  EXPECT_FALSE(holds("grad_accum=1")) << "its recipe does not say";
  EXPECT_TRUE(holds("night pinned=true note~good"));
  EXPECT_TRUE(holds("tags~fast"));
  EXPECT_FALSE(holds("archived=true"));
}

TEST(RunFilter, LooksAtValuesThatOnlyImportedRecipesHave) {
  stepladder::Run run;
  run.recipe = R"({"log_family": "csv", "batch_size": 16, "Optimizer.Name": "Muon"})";
  const auto names = [&] {
    std::set<std::string> found;
    add_recipe_names(run, found);
    return found;
  };
  const auto holds = [&](const std::string& expression) { return RunFilter(expression, names).accepts(run, {}); };
  EXPECT_TRUE(holds("batch_size=16 optimizer.name=muon"));
  EXPECT_FALSE(holds("batch_size>16"));
  EXPECT_THROW(holds("batchsize=16"), FilterError);
  EXPECT_THROW(RunFilter("batch_size=16"), FilterError);
}

TEST(RunFilter, WhatCannotBeUnderstoodIsSaid) {
  EXPECT_THROW(accepts("colour=red"), FilterError);
  try {
    accepts("loss<3");
    ADD_FAILURE() << "there are several losses";
  } catch (const FilterError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean loss_first?"), std::string::npos) << error.what();
  }
  EXPECT_THROW(accepts("steps=<5"), FilterError);
  EXPECT_THROW(accepts("steps="), FilterError);
  EXPECT_THROW(accepts("=5"), FilterError);
  EXPECT_THROW(accepts("steps>many"), FilterError);
}

}  // namespace
}  // namespace stepladder
