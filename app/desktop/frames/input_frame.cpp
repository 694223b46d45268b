// Cuts ImGui's queue of events before each frame. ImGui itself cuts it at a second event of the same key or button, and
// between a button or a key and text.
#include "app/desktop/frames/input_frame.h"

#include <imgui.h>
#include <imgui_internal.h>  // InputEventsQueue

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace stepladder {
namespace {

// A shortcut's command is carried out after its frame; then its field's popup appears, asks for the keyboard, and has
// it.
constexpr int frames_to_settle = 4;

bool is_modifier(ImGuiKey key) {
  return (key & ImGuiMod_Mask_) != 0 || (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper);
}

bool is_key(const ImGuiInputEvent& event, bool down) {
  return event.Type == ImGuiInputEventType_Key && event.Key.Down == down;
}

// Whether the press of a key may move the keyboard elsewhere. Letters in a field and the arrows don't.
bool is_action(ImGuiKey key, bool with_modifiers) {
  constexpr std::array moves = {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow, ImGuiKey_DownArrow,
                                ImGuiKey_PageUp,    ImGuiKey_PageDown,   ImGuiKey_Home,    ImGuiKey_End,
                                ImGuiKey_Backspace, ImGuiKey_Delete};
  constexpr std::array leaves = {ImGuiKey_Tab, ImGuiKey_Enter, ImGuiKey_KeypadEnter, ImGuiKey_Escape};
  const auto is_among = [key](const auto& keys) { return std::ranges::find(keys, key) != keys.end(); };
  if (with_modifiers || is_among(leaves) || (key >= ImGuiKey_F1 && key <= ImGuiKey_F24)) return true;
  return !ImGui::GetIO().WantTextInput && !is_among(moves);
}

}  // namespace

void InputFrames::Seen::add(const ImGuiInputEvent& event) {
  if (event.Type == ImGuiInputEventType_Key && is_modifier(event.Key.Key)) {
    if (event.Key.Key != ImGuiMod_Shift && (event.Key.Key & ImGuiMod_Mask_) != 0) modifiers = event.Key.Down;
  } else if (is_key(event, true)) {
    key = true;
    action = action || is_action(event.Key.Key, modifiers);
  } else if (event.Type == ImGuiInputEventType_MouseButton) {
    action = action || !event.MouseButton.Down;
  }
}

void InputFrames::begin() {
  ImVector<ImGuiInputEvent>& queue = ImGui::GetCurrentContext()->InputEventsQueue;
  const ImGuiIO& io = ImGui::GetIO();
  const Seen before{.modifiers = io.KeyCtrl || io.KeyAlt || io.KeySuper, .action = settling_ > 0};
  const std::vector<ImGuiInputEvent> events(queue.begin(), queue.end());
  std::size_t count = 0;
  const bool may_press = std::exchange(has_waited_, false);
  for (Seen seen = before; count < events.size(); seen.add(events[count++])) {
    const ImGuiInputEvent& event = events[count];
    const bool is_typed =
        event.Type == ImGuiInputEventType_Text || (is_key(event, true) && !is_modifier(event.Key.Key));
    if (seen.action && is_typed) break;
    if (seen.key && is_key(event, false) && is_modifier(event.Key.Key)) break;
    if (event.Type == ImGuiInputEventType_MouseButton && event.MouseButton.Down && !(may_press && count == 0)) {
      has_waited_ = true;
      break;
    }
  }
  queue.resize(static_cast<int>(count));
  ImGui::NewFrame();
  // Of these, ImGui may have left some for the next frame.
  Seen used{.modifiers = before.modifiers};
  for (std::size_t i = 0; i + queue.Size < count; ++i) used.add(events[i]);
  settling_ = used.action ? frames_to_settle : std::max(settling_ - 1, 0);
  for (std::size_t i = count; i < events.size(); ++i) queue.push_back(events[i]);
}

}  // namespace stepladder
