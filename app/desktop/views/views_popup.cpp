// Draws the list of saved views: open, rename, delete, and save the present one. It only pushes commands;
// view_commands.cpp executes them.
#include "app/desktop/views/views_popup.h"

#include <imgui.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "app/desktop/commands/window_commands.h"
#include "app/desktop/theme.h"
#include "app/desktop/views/view_commands.h"
#include "app/desktop/widgets.h"

namespace stepladder {
namespace {

constexpr float list_width = 440;

std::string trimmed(const char* text) {
  const std::string_view typed = text;
  const std::size_t first = typed.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(typed.substr(first, typed.find_last_not_of(' ') - first + 1));
}

bool small_button(const char* words, const std::string& anchor) {
  same_line(4);
  const bool pressed = ImGui::SmallButton(words);
  mark(anchor);
  return pressed;
}

}  // namespace

void ViewsPopup::draw_button(const char* anchor, const Workspace& workspace, Commands& commands) {
  if (quiet_button("Views", std::string(anchor) + "views")) ImGui::OpenPopup("##views");
  draw_list(workspace, commands);
}

void ViewsPopup::draw_view(const std::string& view, const Workspace& workspace, Commands& commands) {
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  if (view == renaming) {
    if (std::exchange(begins_renaming, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    const bool entered = ImGui::InputText("##new_name", new_name.data(), new_name.size(),
                                          ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    mark("views.new_name");
    if (const std::string typed = trimmed(new_name.data()); entered && !typed.empty())
      commands.push_back(RenameView{view, typed});
    if (entered || ImGui::IsItemDeactivated()) renaming.clear();
    return;
  }
  if (ImGui::Selectable(cut_to(view, px(list_width - 222)).c_str(), view == workspace.open_view, 0,
                        ImVec2(px(list_width - 212), 0)))
    commands.push_back(OpenView{view});
  mark("views.open." + view);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::SameLine(right - px(192));
  ImGui::Dummy(ImVec2(0, 0));
  if (small_button("Update", "views.update." + view)) commands.push_back(SaveView{view});
  wrapped_tooltip("Replace it by what the window shows now", 360);
  if (small_button("Rename", "views.rename." + view)) {
    renaming = view;
    begins_renaming = true;
    std::snprintf(new_name.data(), new_name.size(), "%s", view.c_str());
  }
  if (small_button("Delete", "views.delete." + view)) commands.push_back(DeleteView{view});
  ImGui::PopFont();
}

void ViewsPopup::draw_list(const Workspace& workspace, Commands& commands) {
  popup_at_item();
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##views")) {
    const std::vector<std::string>& views = workspace.views;
    if (views.empty()) {
      text_quiet("No saved views yet");
    } else {
      const float row = ImGui::GetTextLineHeightWithSpacing() + px(1);
      ImGui::BeginChild("##list", ImVec2(px(list_width), std::min(px(320), row * static_cast<float>(views.size()))),
                        ImGuiChildFlags_NavFlattened);
      draw_rows(views.size(), [&](std::size_t i) {
        ImGui::PushID(static_cast<int>(i));
        draw_view(views[i], workspace, commands);
        ImGui::PopID();
      });
      ImGui::EndChild();
    }
    spacing(2);
    ImGui::SetNextItemWidth(px(list_width - 80));
    const bool entered = ImGui::InputTextWithHint("##name", "Name of this view", name.data(), name.size(),
                                                  ImGuiInputTextFlags_EnterReturnsTrue);
    mark("views.name");
    close_popup_at_escape();
    same_line(8);
    const std::string typed = trimmed(name.data());
    const bool is_named = !typed.empty();
    ImGui::BeginDisabled(!is_named);
    const bool pressed = ImGui::Button("Save");
    ImGui::EndDisabled();
    mark("views.save");
    if ((entered || pressed) && is_named) {
      commands.push_back(SaveView{typed});
      name = {};
    }
    if (quiet_button("Reset this view", "views.reset")) {
      commands.push_back(ResetPanel{panel});
      ImGui::CloseCurrentPopup();
    }
    text_quiet_wrapped(
        "A view keeps the selected runs, and the charts, axes, columns and filters of History, Compare and Run. It is "
        "saved in the project; Ctrl+K finds it.");
    ImGui::EndPopup();
  } else {
    renaming.clear();
  }
  ImGui::PopStyleVar();
}

}  // namespace stepladder
