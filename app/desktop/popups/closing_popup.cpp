#include "app/desktop/popups/closing_popup.h"

#include <imgui.h>

#include <utility>

#include "app/desktop/frames/frames.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

constexpr const char* title = "##closing";

}  // namespace

Closing ClosingPopup::draw(const std::string& what) {
  if (std::exchange(opens_, false)) ImGui::OpenPopup(title);
  Closing answer = Closing::no;
  const bool is_open = begin_dialog(title);
  if (is_open) {
    text_strong("Close while training?");
    text_sentence(what);
    text_quiet_wrapped(
        "In the background training goes on to the end of the queue, without a window. Start Stepladder again to "
        "watch, pause or stop it.");
    spacing(6);
    if (primary_button("Keep training in the background")) answer = Closing::in_background;
    ImGui::SetItemDefaultFocus();
    mark("closing.background");
    if (ImGui::IsWindowFocused() && !ImGui::IsWindowAppearing() && ImGui::IsKeyPressed(ImGuiKey_Enter, false) &&
        !ImGui::GetIO().NavVisible)
      answer = Closing::in_background;
    same_line(10);
    if (quiet_button("Stop after this step", "closing.stop")) answer = Closing::after_step;
    same_line(10);
    const bool cancelled = quiet_button("Cancel", "closing.cancel");
    if (answer != Closing::no || cancelled || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  }
  end_dialog(is_open);
  return answer;
}

}  // namespace stepladder
