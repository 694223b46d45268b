// Input that comes all at once, as on a busy machine: no click is lost, and none loses its modifier.
#include "app/desktop/frames/input_frame.h"

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/panels/headless.h"

namespace stepladder {
namespace {

// Frames of a window with one row that may be overlapped, until all input is used.
struct Row {
  int clicks = 0, with_shift = 0;

  void frame() {
    begin_imgui_frame();
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
