#include "app/launch/sweep_results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>

#include "app/launch/sweep.h"

namespace stepladder {
namespace {

using enum SweepResult;

// A sweep over lr and batch: runs are added combination by combination, as they are launched.
class SweepResultsTest : public testing::Test {
 protected:
  void add(int rung, double lr, int batch, double loss, RunStatus status = RunStatus::finished) {
    Recipe recipe;
    recipe.lr = lr;
    recipe.batch = batch;
    stepladder::Run& run = runs_.emplace_back();
    run.rung = rung;
    run.status = status;
    run.source = "launched";
    run.stage = rung == 0 ? "baseline" : "lr=" + std::to_string(lr) + ":batch=" + std::to_string(batch);
    run.recipe = to_json(recipe);
    summaries_.emplace_back().loss_last = loss;
    summaries_.back().tokens_per_s = 100.0 * batch;
  }
  std::vector<const stepladder::Run*> runs() const {
    std::vector<const stepladder::Run*> list;
    for (const stepladder::Run& run : runs_) list.push_back(&run);
    return list;
  }
  SweepResults results(const HardwareTable& hardware = {}) const {
    std::vector<SweptRun> swept;
    for (std::size_t i = 0; i < runs_.size(); ++i) swept.push_back({.run = &runs_[i], .summary = &summaries_[i]});
    return sweep_results(swept, {"lr", "batch"}, hardware);
  }
  void add_grid() {
    int rung = 0;
    for (const double lr : {1e-4, 1e-3, 1e-2}) {
      for (const int batch : {4, 8}) {
        for (const double off : {0.0, 0.1}) add(rung, lr, batch, 3 + off + std::fabs(std::log10(lr) + 3) + batch / 8.0);
        ++rung;
      }
    }
  }

  std::deque<stepladder::Run> runs_;
  std::deque<Summary> summaries_;
};

TEST_F(SweepResultsTest, AreMeansAndRangesOverFinishedRuns) {
  add(0, 1e-4, 4, 4);
  add(0, 1e-4, 4, 2);
  add(0, 1e-4, 4, 100, RunStatus::stopped);
  add(1, 3e-4, 4, missing);
  add(1, 3e-4, 4, 3);
  const SweepResults results = this->results();
  ASSERT_EQ(results.rungs.size(), 2u);
  EXPECT_EQ(results.rungs[0].values[0], 1e-4);
  EXPECT_EQ(results.rungs[0].finished, 2u);
  EXPECT_EQ(results.rungs[0].runs, 3u);
  EXPECT_EQ(results.rungs[0].of(loss_last).mean, 3);
  EXPECT_EQ(results.rungs[0].of(loss_last).low, 2);
  EXPECT_EQ(results.rungs[0].of(loss_last).high, 4);
  EXPECT_EQ(results.rungs[1].of(loss_last).mean, 3);
  EXPECT_EQ(results.rungs[1].of(loss_last).runs, 1);
  EXPECT_TRUE(is_missing(results.rungs[1].of(val_loss_last).mean));
  EXPECT_FALSE(results.has(val_loss_last));
  EXPECT_EQ(values_text(results, results.rungs[1]), "lr 0.0003, batch 4");
}

TEST_F(SweepResultsTest, ALossThatIsNaNIsCountedAndDoesNotHideInTheMean) {
  const double values[] = {1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           missing};
  const SweptFigure figure = figure_of(values);
  EXPECT_EQ(figure.mean, 1);
  EXPECT_EQ(figure.runs, 1);
  EXPECT_EQ(figure.left_out, 2);
}

TEST_F(SweepResultsTest, TwoValuesAreALineForEachOfTheSecond) {
  add_grid();
  const SweepLines lines = sweep_lines(results(), loss_last, "lr");
  ASSERT_EQ(lines.lines.size(), 2u);
  EXPECT_EQ(lines.lines[0].label, "batch 4");
  EXPECT_EQ(lines.lines[0].x, (std::vector<double>{1e-4, 1e-3, 1e-2}));
  EXPECT_NEAR(lines.lines[0].y[1], 3.55, 1e-9);
  EXPECT_NEAR(lines.lines[1].low[0], 5, 1e-9);
  EXPECT_NEAR(lines.lines[1].high[0], 5.1, 1e-9);
  EXPECT_EQ(lines.lines[1].runs, (std::vector<int>{2, 2, 2}));
  EXPECT_TRUE(lines.log_x);
  EXPECT_FALSE(lines.log_y);
  const SweepLines other = sweep_lines(results(), tokens_per_s, "batch");
  EXPECT_EQ(other.lines.size(), 3u);
  EXPECT_EQ(other.ticks, (std::map<double, std::string>{{4, "4"}, {8, "8"}}));
  EXPECT_FALSE(other.log_x);
  EXPECT_EQ(other.lines[2].label, "lr 0.01");
  EXPECT_EQ(other.lines[2].y, (std::vector<double>{400, 800}));
}

TEST_F(SweepResultsTest, WordsArePlacesInTheirOrder) {
  for (int rung = 0; rung < 2; ++rung) {
    add(rung, 1e-3, 4, 3.0 - rung);
    Recipe recipe;
    recipe.schedule = rung == 0 ? Schedule::cosine : Schedule::constant;
    runs_.back().recipe = to_json(recipe);
  }
  const SweptRun swept[] = {{&runs_[0], &summaries_[0]}, {&runs_[1], &summaries_[1]}};
  const SweepLines lines = sweep_lines(sweep_results(swept, {"schedule"}, {}), loss_last, "schedule");
  EXPECT_EQ(lines.ticks, (std::map<double, std::string>{{0, "cosine"}, {1, "constant"}}));
  ASSERT_EQ(lines.lines.size(), 1u);
  EXPECT_EQ(lines.lines[0].label, "");
  EXPECT_EQ(lines.lines[0].x, (std::vector<double>{0, 1}));
}

TEST_F(SweepResultsTest, TheBestIsNamedWithWhatOverlapsIt) {
  add_grid();
  const SweepResults results = this->results();
  EXPECT_EQ(results.best(loss_last), 2);
  EXPECT_EQ(best_text(results, loss_last),
            "Lowest at lr 0.001, batch 4: 3.5500 (3.5000 - 3.6000, 2 runs). Clear of the 5 others.");
  EXPECT_EQ(results.best(tokens_per_s), 1);
  EXPECT_EQ(best_text(results, tokens_per_s),
            "Highest at lr 0.0001, batch 8: 800 (800 - 800, 2 runs). The ranges of 2 others overlap it.");
  EXPECT_EQ(best_text(results, val_loss_min), "");
  for (int repeat : {0, 1}) summaries_[static_cast<std::size_t>(repeat)].loss_last = 3.51 + 0.1 * repeat;
  const std::string near = best_text(this->results(), loss_last);
  EXPECT_NE(near.find(" 1 of the 5 others may be as good: expect about "), std::string::npos) << near;
}

TEST_F(SweepResultsTest, TheBestIsAskedForTrustToo) {
  for (int rung = 0; rung < 3; ++rung) add(rung, 1e-3, 4 << rung, 3 - 0.1 * rung);
  for (std::size_t i = 0; i < 3; ++i) {
    summaries_[i].steps = summaries_[i].last_step = 100;
    summaries_[i].first_step = 1;
    runs_[i].tokens_per_step = 64 << i;
  }
  runs_[1].sync = Sync::none;
  runs_[1].device = "cuda";
  runs_[2].params = 124'000'000;
  runs_[2].hardware = "NVIDIA A100-SXM4-40GB";
  summaries_[2].tokens_per_s = 1e9;
  const HardwareTable hardware = HardwareTable::load(std::filesystem::path(STEPLADDER_SOURCE_DIR) / "assets");
  const SweepResults results = this->results(hardware);
  EXPECT_EQ(results.best(tokens_per_s), 1) << "the fastest is impossible";
  EXPECT_EQ(results.picked[static_cast<std::size_t>(tokens_per_s)].of, 2u);
  EXPECT_TRUE(best_text(results, tokens_per_s).ends_with(" Its times are doubtful: Timed without device sync."))
      << best_text(results, tokens_per_s);
  EXPECT_EQ(results.best(loss_last), 2) << "its loss is one";
  EXPECT_TRUE(best_text(results, loss_last).ends_with(" other numbers of tokens, which moves the loss too."));
  runs_[0].tokens_per_step = runs_[1].tokens_per_step = 256;
  EXPECT_EQ(best_text(this->results(hardware), loss_last).find("tokens"), std::string::npos);
}

TEST_F(SweepResultsTest, LogsThatJustEndCountWhereNoneFinished) {
  for (int rung = 0; rung < 3; ++rung) add(rung, 1e-3, 4 << rung, 3 - 0.1 * rung, RunStatus::interrupted);
  EXPECT_EQ(results().best(loss_last), -1) << "trained here";
  for (stepladder::Run& run : runs_) run.source = "import";
  EXPECT_EQ(results().best(loss_last), 2);
  EXPECT_TRUE(best_text(results(), loss_last).ends_with("logs end before the steps that they announce."));
  runs_[0].status = RunStatus::finished;
  EXPECT_EQ(results().best(loss_last), 0) << "an earlier step's loss isn't one of the end";
}

TEST_F(SweepResultsTest, WhatDivergedOrFailedIsRankedLastAndNeverTheBest) {
  add(0, 1e-4, 4, 3.2);
  add(1, 1e-3, 4, 1.5);  // one of two became NaN
  add(1, 1e-3, 4, std::nan(""));
  summaries_.back().nonfinite_steps = 7;
  add(2, 3e-3, 4, missing, RunStatus::failed);
  add(3, 1e-2, 4, 3.1);
  add(4, 1e-1, 4, missing, RunStatus::queued);
  add(3, 1e-2, 4, missing, RunStatus::stopped);  // by somebody
  const SweepResults results = this->results();
  EXPECT_EQ(results.ranked(loss_last), (std::vector<std::size_t>{3, 0, 4, 1, 2}));
  EXPECT_EQ(results.best(loss_last), 3);
  EXPECT_EQ(results.rungs[1].trouble, "1 of 2 NaN");
  EXPECT_EQ(results.rungs[2].trouble, "failed");
  EXPECT_EQ(results.rungs[3].trouble, "");
  EXPECT_EQ(results.rungs[4].trouble, "");
  EXPECT_TRUE(best_text(results, loss_last).starts_with("Lowest at lr 0.01, batch 4: 3.1000"));
  EXPECT_EQ(results.picked[static_cast<std::size_t>(loss_last)].of, 2u);
}

TEST_F(SweepResultsTest, AValueThatNobodyFinishedHasNoPlaceOnTheAxisAndLongNumbersAreShort) {
  add(0, 1e-3, 4, 3);
  add(1, 1e-2, 4, 2);
  add(2, 1e9, 4, missing, RunStatus::failed);
  EXPECT_EQ(sweep_lines(results(), loss_last, "lr").ticks.size(), 2u);
  EXPECT_EQ(values_text(results(), results().rungs[2]), "lr 1e9, batch 4");
}

TEST_F(SweepResultsTest, ALuckySeedHelpsAllCombinations) {
  int rung = 0;
  for (const double lr : {1e-4, 1e-3, 1e-2}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      add(rung, lr, 4,
          3 + 0.1 * static_cast<double>(seed) + 0.02 * rung + 0.001 * static_cast<double>(seed * 7 % 3 * rung));
      Recipe recipe = recipe_from_json(runs_.back().recipe);
      recipe.seed = seed;
      runs_.back().recipe = to_json(recipe);
    }
    ++rung;
  }
  EXPECT_EQ(results().picked[static_cast<std::size_t>(loss_last)].ties, 0u) << "each seed has the same order";
  Recipe other = recipe_from_json(runs_.back().recipe);
  other.seed = 9;
  runs_.back().recipe = to_json(other);
  EXPECT_EQ(results().picked[static_cast<std::size_t>(loss_last)].ties, 2u) << "the seeds differ";
}

TEST_F(SweepResultsTest, TheBestIsTrainedAgainBesideAnotherWithNewSeeds) {
  add_grid();
  Recipe last = recipe_from_json(runs_.back().recipe);
  last.seed = 2000;
  runs_.back().recipe = to_json(last);
  const std::vector<stepladder::Run> recipes(runs_.begin(), runs_.end());
  const LadderRequest again = verification_of_best(results(), loss_last, recipes, "lr");
  EXPECT_EQ(again.base.lr, 1e-4) << "the first combination";
  EXPECT_EQ(rungs_text(again.rungs), "lr=0.001:batch=4");
  ASSERT_EQ(again.seeds.size(), 5u);
  EXPECT_EQ(again.repeats, 5);
  EXPECT_EQ(again.seeds.front(), 2001u) << "beyond those of all runs";
  EXPECT_EQ(again.name, "lr: the best again");
  summaries_[0].loss_last = summaries_[1].loss_last = 1;  // now the first one is the best
  const LadderRequest first = verification_of_best(results(), loss_last, recipes, "lr");
  EXPECT_EQ(first.base.lr, 1e-3) << "against the runner-up";
  EXPECT_EQ(rungs_text(first.rungs), "lr=0.0001:batch=4");
  EXPECT_THROW(verification_of_best(results(), val_loss_last, recipes, "lr"), RecipeError);
}

TEST_F(SweepResultsTest, ARunThatNeverReachedTheTargetIsCounted) {
  add(0, 1e-3, 4, 3);
  add(0, 1e-3, 4, 2);
  const SweptRun swept[] = {{&runs_[0], &summaries_[0], TargetReached{}},
                            {&runs_[1], &summaries_[1], TargetReached{.step = 7, .seconds = 1.5, .tokens = 700}}};
  const SweepResults results = sweep_results(swept, {"lr"}, {});
  EXPECT_EQ(results.rungs[0].of(target_seconds).mean, 1.5);
  EXPECT_EQ(results.rungs[0].of(target_steps).runs, 1);
  EXPECT_EQ(results.rungs[0].of(target_steps).left_out, 1);
}

TEST_F(SweepResultsTest, ALadderIsASweepIfItsRungsSetTheSameValues) {
  add_grid();
  EXPECT_EQ(swept_names(runs()), (std::vector<std::string>{"lr", "batch"}));
  runs_.back().stage = "bf16";
  EXPECT_TRUE(swept_names(runs()).empty());
  runs_.back().stage = "lr=3e-4";
  EXPECT_TRUE(swept_names(runs()).empty());
  runs_.back().stage = "mine:lr=3e-4:batch=8";
  EXPECT_TRUE(swept_names(runs()).empty());
  const std::vector<const stepladder::Run*> baseline{runs().front()};
  EXPECT_TRUE(swept_names(baseline).empty());
}

}  // namespace
}  // namespace stepladder
