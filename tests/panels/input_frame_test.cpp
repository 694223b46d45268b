// Input that comes all at once, as on a busy machine: no click, key or letter is lost, and none lands elsewhere.
#include "app/desktop/frames/input_frame.h"

#include <gtest/gtest.h>

#include "tests/panels/headless.h"

namespace stepladder {
namespace {

// Frames of a window with one row that may be overlapped, until all input is used.
struct Row {
  int clicks = 0, with_shift = 0;
  InputFrames input;

  void frame() {
    input.begin();
    ImGui::SetNextWindowPos(ImVec2(0, 0));
    ImGui::SetNextWindowSize(ImVec2(400, 400));
    ImGui::Begin("window", nullptr, ImGuiWindowFlags_NoTitleBar);
    if (ImGui::Selectable("row", false, ImGuiSelectableFlags_AllowOverlap, ImVec2(300, 100))) {
      ++clicks;
      with_shift += ImGui::GetIO().KeyShift;
    }
    ImGui::End();
    Headless::render();
  }
  void frames() {
    do frame();
    while (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0);
  }
};

TEST(InputFrame, AClickThatComesWithItsMoveIsNotLost) {
  Headless headless;
  Row row;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(600, 600);
  for (int i = 0; i < 3; ++i) row.frame();
  io.AddMousePosEvent(100, 50);
  io.AddMouseButtonEvent(0, true);
  io.AddMouseButtonEvent(0, false);
  row.frames();
  EXPECT_EQ(row.clicks, 1);
}

TEST(InputFrame, AClickOnWhatHasJustAppearedUnderTheMouseIsNotLost) {
  Headless headless;
  Row row;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(100, 50);
  for (int i = 0; i < 3; ++i) {  // nothing is there yet
    row.input.begin();
    Headless::render();
  }
  row.frame();
  io.AddMouseButtonEvent(0, true);
  io.AddMouseButtonEvent(0, false);
  row.frames();
  EXPECT_EQ(row.clicks, 1);
}

TEST(InputFrame, AClickKeepsTheModifierThatIsReleasedAfterIt) {
  Headless headless;
  Row row;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(100, 50);
  for (int i = 0; i < 3; ++i) row.frame();
  io.AddKeyEvent(ImGuiKey_LeftShift, true);
  io.AddKeyEvent(ImGuiMod_Shift, true);
  io.AddMouseButtonEvent(0, true);
  io.AddMouseButtonEvent(0, false);
  io.AddKeyEvent(ImGuiKey_LeftShift, false);
  io.AddKeyEvent(ImGuiMod_Shift, false);
  row.frames();
  EXPECT_EQ(row.clicks, 1);
  EXPECT_EQ(row.with_shift, 1);
}

TEST(InputFrame, LettersBehindAShortcutGoIntoTheFieldThatItOpens) {
  RunStore store = RunStore::in_memory();
  Headless imgui;
  DesktopApp app(store, nullptr, DesktopSettings{.panels = {"ladder"}});
  imgui.frames(app);
  ImGuiIO& io = ImGui::GetIO();
  const auto press = [&](ImGuiKey key) {
    io.AddKeyEvent(key, true);
    io.AddKeyEvent(key, false);
  };
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  press(ImGuiKey_K);
  io.AddKeyEvent(ImGuiMod_Ctrl, false);
  for (const auto& [key, letter] :
       {std::pair(ImGuiKey_M, 'm'), std::pair(ImGuiKey_F, 'f'), std::pair(ImGuiKey_U, 'u')}) {
    io.AddKeyEvent(key, true);
    io.AddInputCharacter(static_cast<unsigned>(letter));
    io.AddKeyEvent(key, false);
  }
  press(ImGuiKey_Enter);
  imgui.frames(app);
  EXPECT_EQ(app.settings().panels, std::vector<std::string>{"mfu"});
}

TEST(InputFrame, TheOrderOfEventsStays) {
  Headless headless;
  Row row;
  ImGuiIO& io = ImGui::GetIO();
  for (int i = 0; i < 3; ++i) row.frame();
  for (int i = 0; i < 3; ++i) {  // in and out again, with a click each
    io.AddMousePosEvent(100, 50);
    io.AddMouseButtonEvent(0, true);
    io.AddMouseButtonEvent(0, false);
    io.AddMousePosEvent(600, 600);
    io.AddMouseButtonEvent(0, true);
    io.AddMouseButtonEvent(0, false);
  }
  row.frames();
  EXPECT_EQ(row.clicks, 3);
}

}  // namespace
}  // namespace stepladder
