// Cuts ImGui's queue of events before each frame. ImGui itself cuts it at a second event of the same key or button,
// and between a button and a key.
#include "app/desktop/frames/input_frame.h"

#include <imgui.h>
#include <imgui_internal.h>  // InputEventsQueue

#include <vector>

namespace stepladder {
namespace {

bool is_modifier(ImGuiKey key) {
  return (key & ImGuiMod_Mask_) != 0 || (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper);
}

// How many of the events the next frame may have.
int count_for_a_frame(const ImVector<ImGuiInputEvent>& events) {
  bool has_key = false, has_moved = false;
  for (int i = 0; i < events.Size; ++i) {
    const ImGuiInputEvent& event = events[i];
    const bool is_key = event.Type == ImGuiInputEventType_Key;
    if (is_key && has_key && is_modifier(event.Key.Key) && !event.Key.Down) return i;
    if (has_moved && event.Type == ImGuiInputEventType_MouseButton && event.MouseButton.Down) return i;
    has_key = has_key || (is_key && !is_modifier(event.Key.Key) && event.Key.Down);
    has_moved = has_moved || event.Type == ImGuiInputEventType_MousePos;
  }
  return events.Size;
}

}  // namespace

void begin_imgui_frame() {
  ImVector<ImGuiInputEvent>& events = ImGui::GetCurrentContext()->InputEventsQueue;
  const int count = count_for_a_frame(events);
  const std::vector<ImGuiInputEvent> later(events.begin() + count, events.end());
  events.resize(count);
  ImGui::NewFrame();
  for (const ImGuiInputEvent& event : later) events.push_back(event);
}

}  // namespace stepladder
