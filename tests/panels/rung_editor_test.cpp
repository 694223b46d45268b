#include <gtest/gtest.h>
#include <stdlib.h>

#include "app/desktop/workspace/launch_state.h"
#include "app/launch/ladder_file.h"
#include "app/launch/recipe_fields.h"
#include "engine/device.h"
#include "tests/panels/headless.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

// The Launch view on a CPU, with a configuration folder of its own.
class RungEditorTest : public testing::Test {
 protected:
  RungEditorTest() : app_(store_, nullptr, DesktopSettings{.panels = {"launch"}}) {
    app_.workspace().device = describe_cpu();
    frames();
  }
  void frames() {
    for (int i = 0; i < 4; ++i) imgui_.frame(app_);
  }
  void click(const std::string& anchor) {
    ASSERT_TRUE(imgui_.click(app_, anchor)) << anchor;
    frames();
  }
  void type(const std::string& anchor, const std::string& text) {
    ASSERT_TRUE(imgui_.type(app_, anchor, text)) << anchor;
    frames();
  }
  void add(const std::string& what) {
    click("launch.add");
    click("launch.add." + what);
  }
  // The planned rungs' stages, and the reasons of those that are left out.
  std::string planned() const {
    std::string text;
    for (const Rung& rung : app_.workspace().launch->plan.plan.rungs) text += (text.empty() ? "" : " ") + rung.stage;
    return text;
  }
  void empty_table() {
    ui_test_anchors::keep();
    for (int i = 0; i < 40; ++i) {
      imgui_.click(app_, "launch.rung_text.0");
      if (!imgui_.click(app_, "launch.rung_remove.0")) break;
    }
    frames();
    ASSERT_FALSE(ui_test_anchors::find("launch.rung_text.0"));
  }

  const TemporaryFolder config_;
  const int set_ = setenv("XDG_CONFIG_HOME", config_.path().c_str(), 1);
  RunStore store_ = RunStore::in_memory();
  Headless imgui_;
  mutable DesktopApp app_;
};

TEST_F(RungEditorTest, RungsAreTypedMovedDuplicatedLeftOutAndRemoved) {
  empty_table();
  add("fused-adamw");
  add("flash-attention");
  add("own");
  EXPECT_EQ(planned(), "baseline fused-adamw flash-attention mine");
  type("launch.rung_text.2", "mine:lr=3e-4:clip=1");
  const Rung& mine = app_.workspace().launch->plan.plan.rungs.back();
  EXPECT_EQ(mine.changed, "lr 0.001 -> 3e-04, clip 0 -> 1");

  click("launch.rung_text.2");
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Alt, true);
  imgui_.frame(app_);
  imgui_.press(app_, ImGuiKey_UpArrow);
  imgui_.press(app_, ImGuiKey_UpArrow);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Alt, false);
  frames();
  EXPECT_EQ(planned(), "baseline mine fused-adamw flash-attention");

  click("launch.rung_duplicate.0");
  type("launch.rung_text.1", "yours:lr=1e-4");
  EXPECT_EQ(planned(), "baseline mine yours fused-adamw flash-attention");
  click("launch.rung.0");
  EXPECT_EQ(planned(), "baseline yours fused-adamw flash-attention");
  click("launch.rung_text.2");
  click("launch.rung_remove.2");
  EXPECT_EQ(planned(), "baseline yours flash-attention");
}

TEST_F(RungEditorTest, RowsAreLowAndTheHeadStaysInSight) {
  ImGui::GetIO().DisplaySize = ImVec2(1600, 900);
  ui_test_anchors::keep();
  frames();
  const auto top_of = [](const std::string& anchor) {
    const auto box = ui_test_anchors::find(anchor);
    return box ? box->y0 : -1;
  };
  const float first = top_of("launch.rung_text.0");
  EXPECT_LT(top_of("launch.rung_text.1") - first, 36) << "one line a rung";
  const float head = top_of("launch.add");
  const auto row = ui_test_anchors::find("launch.rung_text.1");
  ASSERT_TRUE(row);
  ImGuiIO& io = ImGui::GetIO();
  ImGui::GetIO().DisplaySize = ImVec2(1600, 500);
  frames();
  io.AddMousePosEvent(row->x0 + 5, top_of("launch.rung_text.1") + 5);
  imgui_.frame(app_);
  for (int i = 0; i < 5; ++i) {
    io.AddMouseWheelEvent(0, -1);
    frames();
  }
  EXPECT_LT(top_of("launch.rung_text.1"), top_of("launch.add") + 20) << "the rows are scrolled";
  EXPECT_EQ(top_of("launch.add"), head);
}

// A slow window gets all events of a key stroke at once, and the next stroke after Alt was released.
TEST_F(RungEditorTest, AltIsReleasedBetweenTheKeysThatMoveARung) {
  empty_table();
  for (const char* stage : {"fused-adamw", "flash-attention", "bf16", "weight-tying"}) add(stage);
  click("launch.rung_text.3");
  ImGuiIO& io = ImGui::GetIO();
  for (int stroke = 0; stroke < 3; ++stroke) {
    for (const bool down : {true, false}) {
      for (const ImGuiKey key : {ImGuiMod_Alt, ImGuiKey_LeftAlt}) {
        if (down) io.AddKeyEvent(key, true);
      }
      io.AddKeyEvent(ImGuiKey_UpArrow, down);
      for (const ImGuiKey key : {ImGuiMod_Alt, ImGuiKey_LeftAlt}) {
        if (!down) io.AddKeyEvent(key, false);
      }
    }
    frames();
    frames();
  }
  EXPECT_EQ(planned(), "baseline weight-tying fused-adamw flash-attention bf16");
}

TEST_F(RungEditorTest, ARungIsDraggedByItsDots) {
  empty_table();
  add("fused-adamw");
  add("flash-attention");
  frames();
  const auto from = ui_test_anchors::find("launch.drag.1");
  const auto to = ui_test_anchors::find("launch.drag.0");
  ASSERT_TRUE(from && to);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((from->x0 + from->x1) / 2, (from->y0 + from->y1) / 2);
  imgui_.frame(app_);
  io.AddMouseButtonEvent(0, true);
  imgui_.frame(app_);
  for (int step = 1; step <= 8; ++step) {
    io.AddMousePosEvent((from->x0 + from->x1) / 2, from->y0 + (to->y0 - from->y0) * static_cast<float>(step) / 8);
    imgui_.frame(app_);
  }
  io.AddMouseButtonEvent(0, false);
  frames();
  EXPECT_EQ(planned(), "baseline flash-attention fused-adamw");
}

TEST_F(RungEditorTest, AMistakeIsShownBesideItsFieldAndNothingStarts) {
  empty_table();
  add("own");
  type("launch.rung_text.0", "mine:lr=abc");
  EXPECT_TRUE(ui_test_anchors::find("launch.rung_error.0"));
  EXPECT_TRUE(ui_test_anchors::find("launch.problem"));
  type("launch.rung_text.0", "mine:heads=3");
  EXPECT_FALSE(ui_test_anchors::find("launch.rung_error.0"));
  EXPECT_TRUE(ui_test_anchors::find("launch.rung_left_out.0"));
  ASSERT_NE(app_.workspace().launch->plan.skipped(1), nullptr);
  EXPECT_EQ(app_.workspace().launch->plan.skipped(1)->reason.worded(label_of),
            "Heads: 3 heads do not divide a width of 128");
  type("launch.rung_text.0", "mine:lr=3e-4");
  type("launch.batch", "many");
  EXPECT_TRUE(ui_test_anchors::find("launch.error.batch"));
  EXPECT_TRUE(ui_test_anchors::find("launch.problem"));
  type("launch.batch", "24");
  EXPECT_FALSE(ui_test_anchors::find("launch.error.batch"));
  EXPECT_FALSE(ui_test_anchors::find("launch.problem"));
  EXPECT_EQ(app_.workspace().launch->plan.plan.rungs.front().recipe.batch, 24);
}

TEST_F(RungEditorTest, APresetKeepsEverythingAndTheCommandLineSaysTheSame) {
  empty_table();
  add("own");
  type("launch.rung_text.0", "mine:lr=3e-4");
  add("fused-adamw");
  click("launch.rung.fused-adamw");  // off
  type("launch.steps", "7");
  click("launch.copy_command");
  const std::string command = ImGui::GetClipboardText();
  EXPECT_NE(command.find(" --steps 7 --stages baseline,mine:lr=3e-4"), std::string::npos) << command;
  click("launch.presets");
  type("launch.preset_name", "my_ladder");
  click("launch.preset_save");
  EXPECT_EQ(app_.workspace().launch->presets, std::vector<std::string>{"my_ladder"});
  const LadderDraft saved = read_ladder_file(saved_ladder("my_ladder"));
  ASSERT_EQ(saved.rungs.size(), 3u);
  EXPECT_EQ(saved.rungs[1].text, "mine:lr=3e-4");
  EXPECT_FALSE(saved.rungs[2].on);
  EXPECT_EQ(saved.request.base.steps, 7);

  type("launch.rung_text.0", "other:lr=1");
  type("launch.steps", "9");
  click("launch.presets");
  click("launch.preset.saved.my_ladder");
  EXPECT_EQ(planned(), "baseline mine");
  EXPECT_EQ(app_.workspace().launch->plan.plan.rungs[1].recipe.steps, 7);
  EXPECT_EQ(app_.workspace().launch->plan.plan.rungs[1].recipe.lr, 3e-4);
  EXPECT_TRUE(ui_test_anchors::find("launch.estimate"));
}

}  // namespace
}  // namespace stepladder
