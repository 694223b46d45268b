#include "app/desktop/frames/frames.h"

#include <imgui.h>

#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"

namespace stepladder {

bool view_head(const char* title, const std::string& explanation, const HeadButton& button, float beside) {
  const ImVec2 start = ImGui::GetCursorPos();
  ImGui::PushFont(fonts().semibold, text_size);
  const float width = button_width(button.label);
  ImGui::PopFont();
  ImGui::SetCursorPos(ImVec2(ImGui::GetContentRegionMax().x - width, start.y));
  const bool is_pressed = primary_button(button.label, button.is_enabled, button.anchor);
  if (button.tooltip[0] != 0) wrapped_tooltip(button.tooltip, 360);
  ImGui::SetCursorPos(start);
  text_title(title);
  text_cut(explanation, ImGui::GetContentRegionAvail().x - width - beside - px(16), palette().quiet, fonts().regular,
           small_size);
  return is_pressed;
}

void begin_tall_card(const char* id) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, palette().card);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(16), px(14)));
  ImGui::BeginChild(id, ImVec2(0, 0),
                    ImGuiChildFlags_Borders | ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_AutoResizeY);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

bool begin_dialog(const char* id, float width) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, ImVec2(0.5f, 0.5f));
  ImGui::SetNextWindowSize(ImVec2(px(width), 0));
  ImGui::PushStyleColor(ImGuiCol_PopupBg, palette().card);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(10));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(26), px(22)));
  return ImGui::BeginPopupModal(id, nullptr,
                                ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                                    ImGuiWindowFlags_NoSavedSettings);
}

void end_dialog(bool is_open) {
  if (is_open) ImGui::EndPopup();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

}  // namespace stepladder
