// Gives ImGui the window's input in pieces that one frame can tell apart. On a busy machine much of it comes at once.
#pragma once

namespace stepladder {

// ImGui's NewFrame. Of the input that came since the last frame, it keeps for the next ones:
// - a modifier that is released after a key, which would be up when the frame sees the key;
// - a mouse button that is pressed after a move, since what may be overlapped by another item (a row with a button)
//   takes a press only where the mouse was already in the frame before.
// The UI thread only.
void begin_imgui_frame();

}  // namespace stepladder
