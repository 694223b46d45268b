// A sweep in the window: lists in Launch, and its results in Ladder.
#include <gtest/gtest.h>

#include "app/desktop/workspace/launch_state.h"
#include "app/launch/ladder_file.h"
#include "engine/device.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

class SweepFormTest : public testing::Test {
 protected:
  SweepFormTest() : app_(store_, nullptr, DesktopSettings{.panels = {"launch"}}) {
    ImGui::GetIO().DisplaySize = ImVec2(1600, 1600);  // all groups of the recipe
    app_.workspace().device = describe_cpu();
    frames();
  }
  void frames() {
    ui_test_anchors::keep();
    for (int i = 0; i < 4; ++i) imgui_.frame(app_);
  }
  void type(const std::string& anchor, const std::string& text) {
    ASSERT_TRUE(imgui_.type(app_, anchor, text)) << anchor;
    frames();
  }
  void click(const std::string& anchor) {
    ASSERT_TRUE(imgui_.click(app_, anchor)) << anchor;
    frames();
  }
  const std::vector<Rung>& rungs() const { return app_.workspace().launch->plan.plan.rungs; }
  bool shows(const std::string& anchor) {
    frames();
    return ui_test_anchors::find(anchor).has_value();
  }
  std::string copied() {
    click("launch.copy_command");
    return ImGui::GetClipboardText();
  }

  const TemporaryFolder config_;
  const int set_ = setenv("XDG_CONFIG_HOME", config_.path().c_str(), 1);
  RunStore store_ = RunStore::in_memory();
  Headless imgui_;
  mutable DesktopApp app_;
};

TEST_F(SweepFormTest, ListsMakeEveryCombination) {
  const std::size_t before = rungs().size();
  type("launch.lr", "1e-4, 3e-4, 1e-3");
  type("launch.batch", "4,8");
  type("launch.seed", "1, 2");
  ASSERT_EQ(rungs().size(), 6u);
  EXPECT_EQ(rungs()[1].recipe.lr, 3e-4);  // the batch is the first field
  EXPECT_EQ(rungs()[5].recipe.batch, 8);
  EXPECT_TRUE(shows("launch.combination.5"));
  EXPECT_FALSE(shows("launch.rung.bf16"));
  EXPECT_FALSE(shows("launch.problem"));
  const std::string command = copied();
  EXPECT_NE(command.find("stepladder sweep"), std::string::npos);
  EXPECT_NE(command.find(" --over batch=4,8 --over lr=1e-4,3e-4,1e-3 --over seed=1,2"), std::string::npos) << command;
  type("launch.lr", "1e-4");
  type("launch.batch", "");
  EXPECT_TRUE(shows("launch.rung.bf16")) << "seeds alone repeat the rungs";
  EXPECT_EQ(rungs().size(), before);
  const std::string ladder = copied();
  EXPECT_NE(ladder.find(" --seeds 1,2"), std::string::npos) << ladder;
}

TEST_F(SweepFormTest, AMistakeInAListIsShownBesideItsField) {
  type("launch.lr", "1e-4, many");
  EXPECT_TRUE(shows("launch.error.lr"));
  EXPECT_TRUE(shows("launch.problem"));
  type("launch.lr", "1e-4, 1e-4");
  EXPECT_TRUE(shows("launch.error.lr"));
  type("launch.lr", "1e-4, 3e-4");
  EXPECT_FALSE(shows("launch.problem"));
  click("launch.group.1");
  type("launch.heads", "2, 3");
  EXPECT_TRUE(shows("launch.problem")) << "3 heads don't divide the width, and a sweep is launched whole";
}

TEST_F(SweepFormTest, ChoicesAreTickedAndAPresetKeepsTheLists) {
  click("launch.group.2");
  click("launch.schedule");
  click("launch.box.schedule.cosine");
  imgui_.press(app_, ImGuiKey_Escape);
  frames();
  ASSERT_EQ(rungs().size(), 2u);
  EXPECT_EQ(rungs()[1].recipe.schedule, Schedule::cosine);
  click("launch.presets");
  type("launch.preset_name", "both");
  click("launch.preset_save");
  const LadderDraft saved = read_ladder_file(saved_ladder("both"));
  ASSERT_EQ(saved.over.size(), 1u);
  EXPECT_EQ(saved.over[0].values, (std::vector<std::string>{"constant", "cosine"}));
  EXPECT_GT(saved.rungs.size(), 5u) << "the rungs that the sweep leaves out";
  EXPECT_EQ(request_of(saved).rungs.size(), 2u);
  click("launch.schedule");
  click("launch.box.schedule.cosine");
  imgui_.press(app_, ImGuiKey_Escape);
  frames();
  EXPECT_TRUE(shows("launch.rung.bf16"));
  click("launch.presets");
  click("launch.preset.saved.both");
  EXPECT_EQ(rungs().size(), 2u);
}

// A sweep of two learning rates and two batch sizes, with two seeds each.
LadderId keep_sweep(RunStore& store) {
  const LadderId ladder = store.create_ladder({.name = "sweep", .source = "launched"});
  int rung = 0;
  for (const double lr : {1e-4, 1e-2}) {
    for (const int batch : {4, 8}) {
      for (int repeat = 0; repeat < 2; ++repeat) {
        Recipe recipe;
        recipe.lr = lr;
        recipe.batch = batch;
        std::vector<StepRecord> steps;
        for (std::int64_t step = 1; step <= 20; ++step)
          steps.push_back({.step = step,
                           .loss = 4 - 0.05 * static_cast<double>(step) + 0.1 * rung + 0.01 * repeat,
                           .dt_ms = 20,
                           .tokens = batch * 64});
        store.insert_finished(
            {.name = "r",
             .ladder = ladder,
             .rung = rung,
             .repeat = repeat,
             .stage = rung == 0 ? "baseline" : "lr=" + std::to_string(lr) + ":batch=" + std::to_string(batch),
             .status = RunStatus::finished,
             .source = "launched",
             .tokens_per_step = batch * 64,
             .recipe = to_json(recipe)},
            steps);
      }
      ++rung;
    }
  }
  return ladder;
}

TEST(SweepViewTest, ShowsTheCombinationsAndAChartOfEachResult) {
  RunStore store = RunStore::in_memory();
  keep_sweep(store);
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  app.workspace().patience = std::chrono::hours(1);
  ui_test_anchors::keep();
  const auto shows = [&](const char* anchor) {
    for (int i = 0; i < 6; ++i) imgui.frame(app);
    return ui_test_anchors::find(anchor).has_value();
  };
  EXPECT_TRUE(shows("ladder.sweep.row.3"));
  EXPECT_TRUE(shows("chart.sweep"));
  EXPECT_TRUE(shows("ladder.sweep.best"));
  EXPECT_TRUE(shows("ladder.sweep.verify"));
  EXPECT_TRUE(shows("ladder.sweep.order.0,1,2,3")) << "the lowest loss first";
  EXPECT_TRUE(shows("ladder.sweep.legend.1"));
  ASSERT_TRUE(imgui.click(app, "ladder.sweep.row.2"));
  imgui.frame(app);
  EXPECT_EQ(app.workspace().selection.rung, 2);
  ASSERT_TRUE(imgui.click(app, "ladder.sweep.result"));
  ASSERT_TRUE(imgui.click(app, "ladder.sweep.result.target_steps"));
  EXPECT_FALSE(shows("chart.sweep")) << "there is no target yet";
  ASSERT_TRUE(imgui.type(app, "ladder.sweep.target", "3.5"));
  EXPECT_TRUE(shows("chart.sweep"));
  ASSERT_TRUE(imgui.click(app, "ladder.sweep"));
  EXPECT_TRUE(shows("ladder.rung.3"));
  EXPECT_FALSE(shows("chart.sweep"));
}

}  // namespace
}  // namespace stepladder
