// Places the panels in ImGui's dock space. One panel fills the window; several are docked windows from then on.
#include "app/desktop/open_panels.h"

#include <imgui.h>
#include <imgui_internal.h>  // DockBuilder, windows

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "app/desktop/panel_events.h"
#include "app/desktop/theme.h"

namespace stepladder {
namespace {

// A view in a smaller window keeps its least size and scrolls.
ImGuiWindowFlags keep_least_size(const Panel& panel, const char* name, ImVec2 padding) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  if (!window) return 0;
  const ImGuiWindowFlags background = window->DockIsActive ? ImGuiWindowFlags_NoBackground : ImGuiWindowFlags_None;
  const float width = window->Size.x - 2 * padding.x;
  const float height = window->Size.y - window->DecoOuterSizeY1 - 2 * padding.y;
  const ImVec2 least(px(panel.least_width), px(panel.least_height));
  const bool narrow = width < least.x;
  ImGui::SetNextWindowContentSize(ImVec2(narrow ? least.x : 0, height < least.y ? least.y : 0));
  return background | (narrow ? ImGuiWindowFlags_HorizontalScrollbar : ImGuiWindowFlags_None);
}

}  // namespace

std::vector<Panel> all_panels() {
  return {
#define PANEL(name) panels::name(),
#include "app/panels/panels.def"
#undef PANEL
  };
}

bool OpenPanels::is_known(const std::string& id) const {
  return std::ranges::any_of(panels_, [&](const Panel& panel) { return panel.id == id; });
}

bool OpenPanels::is_open(const std::string& id) const {
  return std::ranges::find(open_, id) != open_.end();
}

void OpenPanels::show(const std::string& id) {
  if (!is_known(id)) throw std::out_of_range(id);
  focus_is_stale_ = true;
  show_all({id});
}

void OpenPanels::show_beside(const std::string& id) {
  if (is_open(id)) return;
  open_.push_back(id);
  layout_is_stale_ = true;
}

void OpenPanels::show_all(const std::vector<std::string>& ids) {
  std::vector<std::string> wanted;
  for (const std::string& id : ids)
    if (is_known(id) && std::ranges::find(wanted, id) == wanted.end()) wanted.push_back(id);
  if (wanted.empty() || wanted == open_) return;
  open_ = std::move(wanted);
  layout_is_stale_ = true;
}

void OpenPanels::reset(const std::string& id) {
  std::vector<Panel> fresh = all_panels();
  for (std::size_t i = 0; i < panels_.size(); ++i)
    if (panels_[i].id == id) panels_[i] = std::move(fresh[i]);
}

void OpenPanels::send(const std::string& id, const PanelEvent& event) {
  for (const Panel& panel : panels_)
    if (panel.id == id && panel.receive) panel.receive(event);
}

void OpenPanels::use_layout(const std::string& ini) {
  if (ini.empty()) return;
  ImGui::LoadIniSettingsFromMemory(ini.c_str(), ini.size());
  layout_is_stale_ = false;
}

void OpenPanels::lay_out(unsigned dockspace) {
  if (!layout_is_stale_) return;
  layout_is_stale_ = false;
  focus_is_stale_ = true;
  ImGui::DockBuilderRemoveNode(dockspace);
  ImGui::DockBuilderAddNode(dockspace, ImGuiDockNodeFlags_DockSpace);
  ImVec2 size = ImGui::GetContentRegionAvail();
  ImGui::DockBuilderSetNodeSize(dockspace, ImVec2(std::max(size.x, 1.0f), std::max(size.y, 1.0f)));
  ImGuiID rest = dockspace;
  for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
    ImGuiID left = 0;
    ImGui::DockBuilderSplitNode(rest, ImGuiDir_Left, 1.0f / static_cast<float>(open_.size() - i), &left, &rest);
    ImGui::DockBuilderDockWindow(open_[i].c_str(), left);
  }
  ImGui::DockBuilderDockWindow(open_.back().c_str(), rest);
  // One panel needs no tab; several are dragged and closed by their tabs.
  if (open_.size() == 1) ImGui::DockBuilderGetNode(rest)->LocalFlags |= ImGuiDockNodeFlags_NoTabBar;
  // ImGui would keep an empty central node when its last panel is dragged away.
  if (ImGuiDockNode* central = ImGui::DockBuilderGetCentralNode(dockspace); central && open_.size() > 1)
    central->SetLocalFlags(central->LocalFlags & ~ImGuiDockNodeFlags_CentralNode);
  ImGui::DockBuilderFinish(dockspace);
}

void OpenPanels::draw(const Workspace& workspace, Commands& commands) {
  const bool focus = std::exchange(focus_is_stale_, false);
  for (Panel& panel : panels_) {
    const auto place = std::ranges::find(open_, panel.id);
    if (place == open_.end()) {
      if (panel.leave) panel.leave(commands);
      continue;
    }
    bool keep = true;
    // The id is the window's name for docking; the tab shows the title.
    const ImVec2 padding(px(26), px(20));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, padding);
    const std::string name = panel.title + "###" + panel.id;
    const ImGuiWindowFlags flags = ImGuiWindowFlags_NoCollapse | keep_least_size(panel, name.c_str(), padding);
    if (focus && panel.id == open_.back()) ImGui::SetNextWindowFocus();
    const bool is_visible = ImGui::Begin(name.c_str(), open_.size() > 1 ? &keep : nullptr, flags);
    ImGui::PopStyleVar();
    if (is_visible) {
      panel.draw(workspace, commands);
    } else if (panel.leave) {
      panel.leave(commands);
    }
    ImGui::End();
    if (!keep) {
      open_.erase(place);
      layout_is_stale_ = true;
    }
  }
}

void OpenPanels::leave(Commands& commands) {
  for (const Panel& panel : panels_)
    if (panel.leave) panel.leave(commands);
}

}  // namespace stepladder
