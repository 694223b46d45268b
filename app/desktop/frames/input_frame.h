// Gives ImGui the window's input in pieces that one frame can tell apart. On a busy machine much of it comes at once.
#pragma once

struct ImGuiInputEvent;

namespace stepladder {

// One for each window. The UI thread only.
class InputFrames {
 public:
  // ImGui's NewFrame. Of the input that came since the last frame, the next ones get
  // - a modifier that is released after a key, which would be up when the frame sees the key;
  // - a mouse button that is pressed: what another item may overlap (a row with a button) takes a press only if the
  //   mouse was over it in the frame before, and what has just appeared under the mouse wasn't there then;
  // - keys and letters after a click, a shortcut, Tab, Enter or the like: what is to take them needs some frames to
  //   open and to get the keyboard.
  void begin();

 private:
  // What is known of the input so far.
  struct Seen {
    bool modifiers = false;  // Ctrl, Alt or Super is down
    bool key = false, action = false;
    void add(const ImGuiInputEvent& event);
  };

  int settling_ = 0;         // frames until keys and letters go on
  bool has_waited_ = false;  // the press at the front of the queue, for a frame
};

}  // namespace stepladder
