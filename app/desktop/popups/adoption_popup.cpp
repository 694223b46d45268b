#include "app/desktop/popups/adoption_popup.h"

#include <imgui.h>

#include <cctype>
#include <utility>

#include "app/desktop/frames/frames.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

constexpr const char* adoption_title = "##adoption";

}  // namespace

void AdoptionPopup::open(std::string what) {
  what_ = std::move(what);
  if (!what_.empty()) what_.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(what_.front())));
  opens_ = true;
}

bool AdoptionPopup::draw() {
  if (std::exchange(opens_, false)) ImGui::OpenPopup(adoption_title);
  bool agrees = false;
  const bool is_open = begin_dialog(adoption_title);
  if (is_open) {
    text_strong("Adopt this run?");
    text_sentence(what_);
    text_quiet_wrapped("Adopt it only if you know where the project comes from.");
    spacing(6);
    agrees = primary_button("Adopt and train");
    mark("adoption.agree");
    same_line(10);
    const bool cancelled = quiet_button("Cancel");
    ImGui::SetItemDefaultFocus();
    mark("adoption.cancel");
    if (agrees || cancelled || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  }
  end_dialog(is_open);
  return agrees;
}

}  // namespace stepladder
