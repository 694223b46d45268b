// The side bar folds, the views are still there, and the next start remembers it.
#include <gtest/gtest.h>

#include "app/desktop/side_bar/icons.h"
#include "tests/panels/headless.h"

namespace stepladder {
namespace {

TEST(SideBar, FoldsToIconsAndRemembersIt) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  ASSERT_TRUE(imgui.click(app, "side.history"));
  const float wide = ui_test_anchors::find("side.history")->x1;
  ASSERT_TRUE(imgui.click(app, "side.fold"));
  EXPECT_TRUE(app.settings().side_bar_folded);
  ASSERT_TRUE(imgui.click(app, "side.import"));
  EXPECT_LT(ui_test_anchors::find("side.import")->x1, 0.4f * wide);
  EXPECT_EQ(app.settings().panels, std::vector<std::string>{"import"});
  EXPECT_TRUE(ui_test_anchors::find("side.theme"));
  imgui.press(app, ImGuiKey_B, true);
  EXPECT_FALSE(app.settings().side_bar_folded) << "Ctrl+B unfolds it";
}

TEST(SideBar, ATooltipGoesWithAKeyUntilTheMouseMoves) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  ASSERT_TRUE(imgui.click(app, "side.ladder"));
  const auto shows_tooltip = [] { return ui_test_anchors::find("tooltip").has_value(); };
  for (int i = 0; i < 60; ++i) imgui.frame(app);
  EXPECT_FALSE(shows_tooltip()) << "it would cover the view that was opened";
  const ImVec2 item = ImGui::GetIO().MousePos;
  ImGui::GetIO().AddMousePosEvent(item.x + 500, item.y);
  imgui.frame(app);
  ImGui::GetIO().AddMousePosEvent(item.x, item.y);
  ASSERT_TRUE(imgui.frames_until(app, shows_tooltip));
  imgui.press(app, ImGuiKey_5, true);
  for (int i = 0; i < 60; ++i) imgui.frame(app);
  EXPECT_FALSE(shows_tooltip());
  const ImVec2 at = ImGui::GetIO().MousePos;
  ImGui::GetIO().AddMousePosEvent(at.x + 3, at.y);
  EXPECT_TRUE(imgui.frames_until(app, shows_tooltip));
}

TEST(SideBar, EveryViewHasAnIcon) {
  Headless imgui;
  ImGui::NewFrame();
  ImGui::Begin("icons");
  for (const Panel& panel : all_panels())
    EXPECT_TRUE(draw_icon(ImGui::GetWindowDrawList(), panel.id, ImVec2(100, 100), 24, IM_COL32_WHITE)) << panel.id;
  EXPECT_FALSE(draw_icon(ImGui::GetWindowDrawList(), "no such icon", ImVec2(100, 100), 24, IM_COL32_WHITE));
  ImGui::End();
  ImGui::Render();
}

}  // namespace
}  // namespace stepladder
