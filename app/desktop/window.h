// GLFW, OpenGL and ImGui: set-up, one frame, tear-down. Independent of the content drawn.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/desktop/frames/input_frame.h"

struct GLFWwindow;

namespace stepladder {

// Used on the thread that made it (main), except wake.
class Window {
 public:
  enum class Kind { on_screen, off_screen };  // off_screen: software rendering, no display needed

  // Throws std::runtime_error with GLFW's reason if no window can be opened.
  Window(Kind kind, const std::string& title, int width, int height);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool is_open() const;
  void stay_open();             // although the user asked to close it
  bool is_visible() const;      // false while minimised
  float display_scale() const;  // 1 on an ordinary display, 2 on a high-resolution one
  bool is_maximised() const;
  void maximise();
  void size(int& width, int& height) const;  // in the display's own units, as given to the constructor

  // Files that were dropped on the window since the last call.
  std::vector<std::string> take_dropped();

  // Sleeps until there is input, somebody calls wake, or `seconds` have passed (negative: no limit). Whether there was
  // input.
  bool wait_for_input(double seconds);
  bool is_hovering() const;  // the mouse rests on an item whose tooltip needs frames to appear
  bool poll_input();         // doesn't sleep; whether there was input, or ImGui still holds some for later frames
  static void wake();        // any thread

  // One frame: ImGui's NewFrame, `draw`, render, swap. Returns whether it was rendered: one that looks like the last
  // one on the screen isn't, since a software renderer takes many times as long for that as `draw`.
  bool frame(const std::function<void()>& draw);

  // The last frame, RGBA, rows from the top.
  std::vector<std::uint8_t> pixels(int& width, int& height) const;

 private:
  bool has_input() const;

  GLFWwindow* window_ = nullptr;
  bool off_screen_ = false;
  bool has_lost_pixels_ = true;   // of the last frame: the window was covered
  std::uint64_t shown_hash_ = 0;  // of what the last frame drew
  std::vector<std::string> dropped_;
  InputFrames input_frames_;
};

}  // namespace stepladder
