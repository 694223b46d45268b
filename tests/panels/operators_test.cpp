// Tests the operators in the Ladder and the Run view.
#include <gtest/gtest.h>

#include "tests/panels/headless.h"

namespace stepladder {
namespace {

class Operators : public testing::Test {
 protected:
  Operators() {
    const LadderId ladder = store_.create_ladder({.name = "ladder", .source = "launched"});
    std::vector<StepRecord> steps;
    for (std::int64_t step = 1; step <= 20; ++step)
      steps.push_back({.step = step, .loss = 3, .dt_ms = 10, .tokens = 100});
    for (int rung = 0; rung < 3; ++rung) {
      store_.insert_finished({.name = "run",
                              .ladder = ladder,
                              .rung = rung,
                              .source = "launched",
                              .planned_steps = 20,
                              .tokens_per_step = 100,
                              .device = "cpu"},
                             steps);
    }
  }
  void profile(RunId run, double ms) {
    const StepProfile profile{
        .run = run,
        .at = 1,
        .steps = 2,
        .operators = {{"forward", "aten::addmm", "8x4 4x4", 2, ms, 1e6}, {"optimizer", "aten::mul", "", 3, 1}}};
    store_.apply(std::vector<RunEvent>{profile});
  }
  void open(const char* panel) {
    app_.emplace(store_, nullptr, DesktopSettings{.panels = {panel}});
    app_->workspace().patience = std::chrono::hours(1);
    for (int i = 0; i < 4; ++i) imgui_.frame(*app_);
  }
  bool shows(const std::string& anchor) {
    ui_test_anchors::keep();
    for (int i = 0; i < 3; ++i) imgui_.frame(*app_);
    return ui_test_anchors::find(anchor).has_value();
  }

  RunStore store_ = RunStore::in_memory();
  Headless imgui_;
  std::optional<DesktopApp> app_;
};

TEST_F(Operators, ALadderWithoutThemOffersOnlyStepTimes) {
  open("ladder");
  EXPECT_TRUE(shows("ladder.axis"));
  EXPECT_FALSE(shows("ladder.times"));
}

TEST_F(Operators, ALadderShowsThemAndRemembersTheSwitch) {
  profile(1, 5);
  profile(2, 3);
  open("ladder");
  ASSERT_TRUE(shows("ladder.times"));
  EXPECT_TRUE(shows("ladder.operators"));
  app_->execute();
  ASSERT_TRUE(imgui_.click(*app_, "ladder.times"));
  imgui_.press(*app_, ImGuiKey_DownArrow);
  imgui_.press(*app_, ImGuiKey_Enter);
  EXPECT_TRUE(shows("ladder.times"));
  EXPECT_FALSE(shows("ladder.operators"));
  const DesktopSettings settings = app_->settings();
  app_.emplace(store_, nullptr, settings);
  app_->workspace().patience = std::chrono::hours(1);
  EXPECT_TRUE(shows("ladder.times"));
  EXPECT_FALSE(shows("ladder.operators"));
}

TEST_F(Operators, AnArrowInAnOpenListChoosesNoRung) {
  profile(1, 5);
  open("ladder");
  ASSERT_TRUE(imgui_.click(*app_, "ladder.rung.0"));
  ASSERT_EQ(app_->workspace().selection.rung, 0);
  ASSERT_TRUE(imgui_.click(*app_, "ladder.times"));
  imgui_.press(*app_, ImGuiKey_DownArrow);
  EXPECT_EQ(app_->workspace().selection.rung, 0);
  imgui_.press(*app_, ImGuiKey_Escape);
  imgui_.press(*app_, ImGuiKey_DownArrow);
  EXPECT_EQ(app_->workspace().selection.rung, 1);
}

TEST_F(Operators, AnArrowBeyondTheLastRungStaysInTheTable) {
  profile(1, 5);
  open("ladder");
  ASSERT_TRUE(imgui_.click(*app_, "ladder.rung.0"));
  for (int i = 0; i < 8; ++i) imgui_.press(*app_, ImGuiKey_DownArrow);
  const int last = app_->workspace().selection.rung;
  imgui_.press(*app_, ImGuiKey_Enter);  // it would open a list
  imgui_.press(*app_, ImGuiKey_UpArrow);
  EXPECT_EQ(app_->workspace().selection.rung, last - 1);
}

TEST_F(Operators, ARunComesWithThoseOfTheRungBefore) {
  profile(1, 5);
  profile(2, 3);
  open("run");
  app_->workspace().selection.shown_run = 2;
  ASSERT_TRUE(imgui_.click(*app_, "run.tab.Operators"));
  EXPECT_TRUE(shows("run.operators"));
  EXPECT_NE(app_->workspace().profile(1), nullptr) << "the profile that it is compared with was read too";
  app_->workspace().selection.shown_run = 3;
  EXPECT_FALSE(shows("run.operators"));
}

}  // namespace
}  // namespace stepladder
