// Runs that are too long to be read whole.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/desktop/models/comparison.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/models/run_points.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

class LongRun : public testing::Test {
 protected:
  LongRun() {
    std::vector<StepRecord> steps;
    for (std::int64_t i = 1; i <= most_steps_read_whole + 50'000; ++i) {
      const bool evaluated = i % 40 == 0;
      steps.push_back({.step = i, .loss = 3, .val_loss = evaluated ? 3 : missing, .dt_ms = 20, .tokens = 768});
    }
    steps[123'456].loss = 9;
    ladder_ = store_.create_ladder({.name = "two"});
    run_ = store_.insert_finished(
        {.name = "long", .ladder = ladder_, .created_at = 1, .tokens_per_step = 768, .params = 1000}, steps);
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"run"}});
  }
  // Draws frames until there are no more requests; a view that never stops would keep the window drawing.
  void settle() {
    int frames = 0;
    for (int quiet = 0; quiet < 3 && frames < 200; ++frames) {
      imgui_.frame(*app_);
      quiet = imgui_.asked() ? 0 : quiet + 1;
    }
    EXPECT_LT(frames, 200);
  }
  void zoom(float x, float y, int notches) {
    ImGui::GetIO().AddMousePosEvent(x, y);
    for (int i = 0; i < notches; ++i) {
      ImGui::GetIO().AddMouseWheelEvent(0, 1);
      settle();
    }
  }

  RunStore store_ = RunStore::in_memory();
  LadderId ladder_ = 0;
  RunId run_ = 0;
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(LongRun, IsShownByItsOverviewAndZoomedToItsSteps) {
  settle();
  const Workspace& workspace = app_->workspace();
  const auto overview = workspace.overview(run_, Quantity::loss);
  ASSERT_NE(overview, nullptr);
  EXPECT_EQ(*std::max_element(overview->points.y.begin(), overview->points.y.end()), 9);
  EXPECT_EQ(overview->behind(), 250'000);
  EXPECT_NE(workspace.overview(run_, Quantity::val_loss), nullptr);
  zoom(500, 330, 40);
  for (const Quantity quantity : {Quantity::loss, Quantity::dt_ms, Quantity::val_loss}) {
    const auto zoomed = workspace.zoomed_overview(run_, quantity);
    ASSERT_NE(zoomed, nullptr);
    EXPECT_EQ(zoomed->behind(), 0) << "the steps themselves";
    EXPECT_LT(zoomed->last - zoomed->first, 40'000);
  }
  EXPECT_FALSE(workspace.find(run_)->loaded);
}

TEST_F(LongRun, IsOverlaidInHistoryBesideAKeyThatSelectsAll) {
  app_->show("history");
  settle();
  imgui_.press(*app_, ImGuiKey_A, true);
  EXPECT_EQ(app_->workspace().selection.runs, std::set<RunId>{run_});
  zoom(700, 620, 60);
  const auto zoomed = app_->workspace().zoomed_overview(run_, Quantity::loss);
  ASSERT_NE(zoomed, nullptr);
  EXPECT_EQ(zoomed->behind(), 0);
  EXPECT_FALSE(app_->workspace().find(run_)->loaded);
}

// The same selection looks the same after a restart, whichever views were open before.
TEST_F(LongRun, ChartsDoNotDependOnWhatOtherViewsHaveRead) {
  std::vector<StepRecord> steps;
  for (std::int64_t i = 1; i <= 9000; ++i) steps.push_back({.step = i, .loss = 3, .dt_ms = 20, .tokens = 768});
  const RunId run = store_.insert_finished({.name = "short", .created_at = 3, .tokens_per_step = 768}, steps);
  Workspace& workspace = app_->workspace();
  workspace.load(store_);
  const auto points = [&](Reads reads) {
    DataRequests requests;
    run_points(workspace, *workspace.find(run), Quantity::loss, nullptr, requests, reads);
    read_now(requests, store_, workspace);
    return run_points(workspace, *workspace.find(run), Quantity::loss, nullptr, requests, reads).x.size();
  };
  const std::size_t of_overview = points(Reads::overview);
  EXPECT_LT(of_overview, 9000u);
  EXPECT_EQ(points(Reads::steps), 9000u);
  EXPECT_EQ(points(Reads::overview), of_overview);

  app_.emplace(store_, nullptr, DesktopSettings{.panels = {"history"}});
  app_->workspace().selection.runs = {run};
  settle();
  EXPECT_TRUE(app_->workspace().find(run)->loaded) << "History draws the steps of a few runs";
}

// Twice as fast, with a loss that is 0.1 higher from the middle on.
class TwoLongRuns : public LongRun {
 protected:
  TwoLongRuns() {
    std::vector<StepRecord> steps;
    for (std::int64_t i = 1; i <= most_steps_read_whole + 50'000; ++i)
      steps.push_back({.step = i, .loss = i > 125'000 ? 3.1 : 3, .dt_ms = 10, .tokens = 768});
    other_ = store_.insert_finished(
        {.name = "other", .ladder = ladder_, .rung = 1, .created_at = 2, .tokens_per_step = 768, .params = 1000},
        steps);
    app_->workspace().load(store_);
  }
  RunId other_ = 0;
};

TEST_F(TwoLongRuns, AreComparedWithoutBeingReadWhole) {
  const Workspace& workspace = app_->workspace();
  ComparisonViewModel shown;
  ComparisonOptions options{.axis = Axis::time};
  SharedX zoom;
  const auto follow = [&] {
    for (int rounds = 0; rounds < 50; ++rounds) {
      DataRequests asked;
      shown.update(workspace, workspace.runs_of(ladder_), run_, options, zoom, asked);
      if (asked.empty()) return;
      read_now(asked, store_, app_->workspace());
      EXPECT_TRUE(asked.series.empty());
    }
    ADD_FAILURE() << "it never rests";
  };
  follow();
  ASSERT_EQ(shown.curves.lines.size(), 2u);
  const ComparedMetric& base = shown.curves.lines[0].of(Quantity::loss);
  const ComparedMetric& other = shown.curves.lines[1].of(Quantity::loss);
  EXPECT_EQ(*std::max_element(base.points.y.begin(), base.points.y.end()), 9) << "the spike of one step";
  EXPECT_LT(*std::max_element(base.means.y.begin(), base.means.y.end()), 3.1);
  EXPECT_NEAR(base.points.x.back(), 250'000 * 0.020, 1e-6) << "seconds of training";
  EXPECT_NEAR(other.points.x.back(), 250'000 * 0.010, 1e-6);
  EXPECT_NEAR(step_at(shown.curves.places.at(other_), 1000), 100'000, 1);
  EXPECT_NEAR(other.gap.y.back(), 0.1, 1e-6);
  EXPECT_EQ(base.behind, 250'000);
  const RungJudgement& verdict = shown.judged.at(other_);
  EXPECT_NEAR(verdict.over_baseline.factor, 2, 1e-9);
  EXPECT_EQ(verdict.over_baseline.verdict, Verdict::faster);
  EXPECT_EQ(verdict.loss.verdict, LossVerdict::worse);
  EXPECT_NEAR(verdict.loss.tail_gap, 0.1, 1e-9);

  zoom = {.low = 1235, .high = 1237};  // in seconds; the other run's steps around 123,600
  follow();
  EXPECT_EQ(shown.curves.lines[1].of(Quantity::loss).behind, 0) << "the steps themselves";
  EXPECT_FALSE(workspace.find(run_)->loaded);
  options = {.axis = Axis::loss};
  zoom = {};
  follow();
  EXPECT_GT(shown.curves.lines[0].excerpt, 10'000);
  EXPECT_FALSE(shown.curves.lines[0].of(Quantity::tokens_per_s).points.empty());
}

TEST_F(TwoLongRuns, AreALadderWithoutBeingReadWhole) {
  app_->show("ladder");
  settle();
  EXPECT_FALSE(app_->workspace().find(run_)->loaded);
  EXPECT_NE(app_->workspace().find(run_)->excerpt, nullptr);
  LadderViewModel shown;
  DataRequests asked;
  shown.update(app_->workspace(), ladder_, 0, ComparisonAxis::steps, nullptr, asked);
  EXPECT_TRUE(asked.empty()) << "the view has read it all";
  ASSERT_EQ(shown.model.rungs.size(), 2u);
  EXPECT_NEAR(shown.model.rungs[1].judged.over_baseline.factor, 2, 1e-9);
  EXPECT_TRUE(shown.model.rungs[1].judged.over_baseline.ci95.known());
  EXPECT_EQ(shown.model.losses[0].behind, 250'000);
  EXPECT_NEAR(shown.model.losses[1].gap.y.back(), 0.1, 1e-6);
}

TEST_F(LongRun, FewValuesFarApartAreNotLookedForAmongAllSteps) {
  const Overview all = store_.overview(run_, Quantity::val_loss, 1, 240'000, 1000);
  EXPECT_GT(all.width, 1);
  EXPECT_GE(all.values(), 6000);
  const Overview near = store_.overview(run_, Quantity::val_loss, 100'000, 110'000, 1000);
  EXPECT_TRUE(near.exact());
  EXPECT_EQ(near.values(), 251);
}

}  // namespace
}  // namespace stepladder
