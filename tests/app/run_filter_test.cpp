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
  EXPECT_FALSE(accepts("loss_last<5"));  // not known is not less
}

TEST(RunFilter, WhatCannotBeUnderstoodIsSaid) {
  EXPECT_THROW(accepts("colour=red"), FilterError);
  EXPECT_THROW(accepts("steps=<5"), FilterError);
  EXPECT_THROW(accepts("steps="), FilterError);
}

}  // namespace
}  // namespace stepladder
