// Runs that are too long to be read whole.
#include <gtest/gtest.h>

#include <algorithm>

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
    run_ = store_.insert_finished({.name = "long", .created_at = 1, .tokens_per_step = 768}, steps);
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {"run"}});
  }
  // Frames until nothing is asked for any more; a view that never rests would keep the window drawing.
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
  RunId run_ = 0;
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(LongRun, IsShownByItsGlanceAndZoomedToItsSteps) {
  settle();
  const Workspace& workspace = app_->workspace();
  const Glance* glance = workspace.glance(run_, Quantity::loss);
  ASSERT_NE(glance, nullptr);
  EXPECT_EQ(*std::max_element(glance->y.begin(), glance->y.end()), 9);
  EXPECT_FALSE(glance->exact);
  EXPECT_NE(workspace.glance(run_, Quantity::val_loss), nullptr);
  zoom(500, 330, 40);
  for (const Quantity quantity : {Quantity::loss, Quantity::dt_ms, Quantity::val_loss}) {
    const Glance* sight = workspace.sight(run_, quantity);
    ASSERT_NE(sight, nullptr);
    EXPECT_TRUE(sight->exact);
    EXPECT_LT(sight->last - sight->first, 40'000);
  }
  EXPECT_FALSE(workspace.find(run_)->loaded);
}

TEST_F(LongRun, IsOverlaidInHistoryBesideAKeyThatSelectsAll) {
  app_->show("history");
  settle();
  imgui_.press(*app_, ImGuiKey_A, true);
  EXPECT_EQ(app_->workspace().selected_runs, std::set<RunId>{run_});
  zoom(700, 620, 60);
  const Glance* sight = app_->workspace().sight(run_, Quantity::loss);
  ASSERT_NE(sight, nullptr);
  EXPECT_TRUE(sight->exact);
  EXPECT_FALSE(app_->workspace().find(run_)->loaded);
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
