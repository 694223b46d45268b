// Positions of named parts of the window, written to a file so that a test can click them with a real mouse.
// Off unless STEPLADDER_UI_TEST_ANCHORS names a file.
#pragma once

#include <optional>
#include <string>

namespace stepladder::ui_test_anchors {

void note(const std::string& name, float x0, float y0, float x1, float y1);

// At the frame's end: writes `name x0 y0 x1 y1` lines if anything has moved (to a temporary name, then renamed).
void write_frame();

// For tests in the same process: from now on `find` returns positions in the last frame. Forgets those of frames
// before.
struct Box {
  float x0, y0, x1, y1;
};
void keep();
std::optional<Box> find(const std::string& name);

}  // namespace stepladder::ui_test_anchors
