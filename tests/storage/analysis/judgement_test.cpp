#include "storage/analysis/judgement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stepladder {
namespace {

// Three rungs at 100, 50 and 25 ms a step.
class Rungs : public testing::Test {
 protected:
  Rungs() {
    for (int rung = 0; rung < 3; ++rung) {
      runs_[rung].id = rung + 1;
      runs_[rung].rung = rung;
      runs_[rung].tokens_per_step = 1000;
      for (std::int64_t step = 1; step <= 60; ++step) {
        series_[rung].append({.step = step,
                              .loss = 3 - 0.01 * static_cast<double>(step) + (rung == 2 ? 0.5 : 0),
                              .dt_ms = 100.0 / (1 << rung) + 0.01 * static_cast<double>(step % 3),
                              .tokens = 1000});
      }
      summaries_[rung] = summarise(series_[rung], -1, 1000);
      measured_.push_back({&runs_[rung], &summaries_[rung], &series_[rung]});
    }
  }
  stepladder::Run runs_[3];
  Series series_[3];
  Summary summaries_[3];
  std::vector<MeasuredRun> measured_;
};

TEST_F(Rungs, FactorsAreOverTheFirstUnlessAnotherIsChosen) {
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
  EXPECT_EQ(rungs[0].over_baseline.factor, 1);
  EXPECT_NEAR(rungs[1].over_baseline.factor, 2, 0.01);
  EXPECT_NEAR(rungs[2].over_baseline.factor, 4, 0.01);
  EXPECT_NEAR(rungs[2].over_previous.factor, 2, 0.01);
  EXPECT_TRUE(is_missing(rungs[0].over_previous.factor));
  EXPECT_EQ(rungs[2].loss.verdict, LossVerdict::worse);
}

TEST_F(Rungs, AChosenBaselineIsHeldAgainstThoseBelowItToo) {
  const std::vector<RungJudgement> rungs = judge_rungs(measured_, {}, 1);
  EXPECT_NEAR(rungs[0].over_baseline.factor, 0.5, 0.01);
  EXPECT_EQ(rungs[0].over_baseline.verdict, Verdict::slower);
  EXPECT_EQ(rungs[1].over_baseline.factor, 1);
  EXPECT_NEAR(rungs[2].over_baseline.factor, 2, 0.01);
  EXPECT_NEAR(rungs[1].over_previous.factor, 2, 0.01);
  EXPECT_EQ(rungs[0].loss.verdict, LossVerdict::same);
  EXPECT_EQ(rungs[2].loss_against, 1);
  EXPECT_EQ(judge_rungs(measured_, {}, 7, {.intervals = Intervals::no})[0].over_baseline.factor, 1)
      << "a rung that is not there";
  EXPECT_TRUE(judge_rungs({}, {}).empty());
}

TEST_F(Rungs, AFlagOfALaterRepeatNamesTheRepeatAsPeopleCount) {
  runs_[1].rung = 0;
  runs_[1].repeat = 1;
  for (std::size_t i = 0; i < 2; ++i) runs_[i].status = RunStatus::finished;
  summaries_[1].nonfinite_steps = 1;
  const std::vector<RungJudgement> rungs = judge_rungs(std::span(measured_).first(2), {});
  ASSERT_EQ(rungs.size(), 1u);
  const auto flag = std::find_if(rungs[0].flags.begin(), rungs[0].flags.end(),
                                 [](const Flag& each) { return each.id == FlagId::nonfinite_loss; });
  ASSERT_NE(flag, rungs[0].flags.end());
  EXPECT_TRUE(flag->why.starts_with("Repeat 2: ")) << flag->why;  // its name ends in "#2"
}

TEST_F(Rungs, ACancelledRepeatIsNoRunBesideAFinishedOne) {
  for (int i = 0; i < 2; ++i) {
    runs_[i].rung = 0;
    runs_[i].repeat = i;
  }
  runs_[0].status = runs_[2].status = RunStatus::finished;
  const auto flagged_once = [](const RungJudgement& rung) {
    return std::any_of(rung.flags.begin(), rung.flags.end(),
                       [](const Flag& flag) { return flag.id == FlagId::not_repeated; });
  };
  for (const RunStatus status : {RunStatus::stopped, RunStatus::interrupted, RunStatus::failed, RunStatus::running}) {
    runs_[1].status = status;
    const std::vector<RungJudgement> rungs = judge_rungs(measured_, {});
    EXPECT_EQ(rungs[0].runs.size(), 2u);
    EXPECT_EQ(rungs[0].left_out, 1) << to_string(status);
    EXPECT_TRUE(flagged_once(rungs[0])) << to_string(status);
    EXPECT_NEAR(rungs[0].tokens_per_s, 10'000, 10) << "of the finished one alone";
  }
  runs_[1].status = RunStatus::finished;
  EXPECT_FALSE(flagged_once(judge_rungs(measured_, {})[0]));
  EXPECT_NEAR(judge_rungs(measured_, {})[0].tokens_per_s, 15'000, 15);
  // Without a finished one, what there is counts.
  runs_[0].status = runs_[1].status = RunStatus::stopped;
  EXPECT_EQ(judge_rungs(measured_, {})[0].left_out, 0);
  EXPECT_FALSE(flagged_once(judge_rungs(measured_, {})[0]));
}

TEST_F(Rungs, ACancelledRepeatThatDivergedIsNotForgotten) {
  for (int i = 0; i < 2; ++i) {
    runs_[i].rung = 1;
    runs_[i].repeat = i;
  }
  runs_[2].rung = 0;
  runs_[0].status = runs_[2].status = RunStatus::finished;
  runs_[1].status = RunStatus::stopped;
  series_[1].loss[30] = std::nan("");
  summaries_[1] = summarise(series_[1], -1, 1000);
  EXPECT_EQ(judge_rungs(measured_, {})[1].loss.verdict, LossVerdict::diverged);
}

}  // namespace
}  // namespace stepladder
