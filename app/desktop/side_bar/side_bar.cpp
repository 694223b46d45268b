// Draws the side bar: views with their keys, the machine's state and buttons, or icons alone when folded. In a low
// window the views have priority over the machine's lines.
#include "app/desktop/side_bar/side_bar.h"

#include <imgui.h>

#include <algorithm>
#include <array>

#include "app/desktop/commands/window_commands.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/side_bar/icons.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/desktop/workspace/machines_state.h"
#include "app/desktop/workspace/verification.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr float icon_size = 18;
constexpr float rows_top = 82;
constexpr float machine_height = 168;         // of the machine's lines and the buttons
constexpr float folded_machine_height = 110;  // of the buttons, one under the other

// The group that begins with a view; null if it continues one.
const char* group_at(const std::string& panel) {
  constexpr std::array<std::array<const char*, 2>, 4> groups{
      {{"launch", "Measure"}, {"compare", "Look"}, {"mfu", "Judge"}, {"import", "Bring in"}}};
  for (const auto& [first, title] : groups)
    if (panel == first) return title;
  return nullptr;
}

// What a view is for; empty if its title says it.
std::string what_of(const std::string& panel) {
  constexpr std::array<std::array<const char*, 2>, 12> views{
      {{"launch", "Trains a ladder or a sweep"},
       {"live", "The run that trains now"},
       {"ladder", "What each rung bought, and whether it is real"},
       {"compare", "Curves of several runs, and their differences"},
       {"history", "All runs: filter, group, tag, delete"},
       {"run", "One run in full"},
       {"profile", "Where a step's time goes, and what would make it shorter"},
       {"mfu", "Share of the hardware's peak, and the roofline"},
       {"tries", "Series of changes to a script, each judged"},
       {"record", "Whether a pool of runs is a record"},
       {"import", "Logs, tables, traces, other trackers' data"},
       {"machines", "Hosts and clusters that runs are launched on"}}};
  for (const auto& [id, what] : views)
    if (panel == id) return what;
  return {};
}

// A button of an icon in the middle of `width` pixels, without a frame. Returns whether it was pressed.
bool icon_button(const char* id, const char* icon, float width, const char* tooltip) {
  const float height = px(icon_size + 12);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const bool pressed = ImGui::InvisibleButton(id, ImVec2(width, height));
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (hovered) {
    draw->AddRectFilled(at, ImVec2(at.x + width, at.y + height), u32(palette().accent, 0.08f), px(6));
    wrapped_tooltip(tooltip, 360);
  }
  draw_icon(draw, icon, ImVec2(at.x + (width - px(icon_size)) / 2, at.y + (height - px(icon_size)) / 2), px(icon_size),
            u32(hovered ? palette().text : palette().quiet));
  return pressed;
}

void draw_head(const SideBar& bar, Commands& commands) {
  const float side = px(icon_size + 12);
  if (!bar.is_folded) {
    ImGui::SetCursorPos(ImVec2(px(22), px(22)));
    text_in("Stepladder", fonts().display, 19);
  }
  ImGui::SetCursorPos(ImVec2(bar.is_folded ? (bar.width - side) / 2 : bar.width - px(12) - side, px(19)));
  if (icon_button("##fold", bar.is_folded ? "unfold" : "fold", side,
                  bar.is_folded ? "Unfold the side bar, Ctrl+B" : "Fold the side bar, Ctrl+B"))
    commands.push_back(FoldSideBar{});
  mark("side.fold");
}

void draw_view(const SideBar& bar, std::size_t i, ImVec2 size, Commands& commands) {
  const Panel& panel = bar.panels[i];
  const bool is_open = std::ranges::find(bar.open, panel.id) != bar.open.end();
  ImGui::PushID(panel.id.c_str());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::InvisibleButton("##open", size))
    commands.push_back(ShowPanel{panel.id, ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyShift});
  mark("side." + panel.id);
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) {  // the first nine have a key (actions.cpp)
    const std::string key = i < 9 ? "Ctrl+" + std::to_string(i + 1) + ". " : "";
    const std::string what = (bar.is_folded ? panel.title + ": " : "") + what_of(panel.id);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) {  // beside the bar, where it covers no other view
      ImGui::SetNextWindowPos(ImVec2(ImGui::GetWindowPos().x + bar.width + px(4), at.y));
      ImGui::SetTooltip("%s\n%sCtrl-click: open side by side", what.c_str(), key.c_str());
    }
  }
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (is_open || hovered)
    draw->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), u32(palette().accent, is_open ? 0.18f : 0.08f),
                        px(6));
  const float icon = std::min(px(icon_size), size.y - px(4));
  const float left = bar.is_folded ? (size.x - icon) / 2 : px(10);
  draw_icon(draw, panel.id, ImVec2(at.x + left, at.y + (size.y - icon) / 2), icon,
            u32(is_open ? palette().accent : palette().quiet));
  if (!bar.is_folded) {
    ImGui::PushFont(is_open ? fonts().semibold : fonts().regular, text_size);
    draw->AddText(ImVec2(at.x + left + icon + px(10), at.y + (size.y - ImGui::GetTextLineHeight()) / 2),
                  u32(is_open ? palette().accent : palette().text), panel.title.c_str());
    ImGui::PopFont();
  }
  if (panel.id == "live" && bar.workspace.running()) {
    const ImVec2 dot =
        bar.is_folded ? ImVec2(at.x + size.x - px(6), at.y + px(6)) : ImVec2(at.x + size.x - px(16), at.y + size.y / 2);
    draw->AddCircleFilled(dot, px(4), u32(bar.workspace.is_paused ? palette().warning : palette().good));
  }
  ImGui::PopID();
}

// The other machine that a run is on; empty: this one.
std::string machine_of(RunId run, const Workspace& workspace) {
  for (const MachineStatus& status : workspace.machines->list)
    for (const FarWork& work : status.work)
      if (std::ranges::find(work.runs, run) != work.runs.end()) return status.machine.alias.text();
  return {};
}

// "verifying rung 2", with what it waits for; empty if no gain is verified.
std::string verification_text(const Verification& verification) {
  if (!verification.open) return {};
  return (verification.wait ? "waits for quiet, rung " : "verifying rung ") + std::to_string(verification.rung);
}

// The machine's state: "no GPU – nothing trains", "training, 2 min left"; for a run elsewhere "box trains". While
// Launch reads the load, what it says of other programs.
std::string state_text(const Workspace& workspace, bool knows_load) {
  const std::optional<DeviceReport>& device = workspace.device;
  if (const RunEntry* const running = workspace.running())
    if (const std::string machine = machine_of(running->run.id, workspace); !machine.empty())
      return machine + (workspace.is_paused ? " is paused" : " trains");
  if (const std::string verifying = verification_text(*workspace.verification); !verifying.empty()) return verifying;
  if (!workspace.running() && !workspace.waiting().empty())
    return plural(std::ssize(workspace.waiting()), "run waits", "runs wait");
  if (knows_load && !workspace.running() && device) {
    const std::string busy = workspace.launch->others_text(*device, device->resolve("auto"));
    if (!busy.empty()) return busy.substr(0, busy.find(" ("));
  }
  if (!workspace.running())
    return std::string(!device || !workspace.device_problem.empty() ? ""
                       : device->gpus.empty()                       ? "no GPU  \xE2\x80\x93  "
                                                                    : "GPU  \xE2\x80\x93  ") +
           "nothing trains";
  const double seconds = workspace.seconds_left_of_all();
  return (workspace.is_paused ? "paused" : "training") +
         (is_missing(seconds) ? "" : ", " + duration_text(seconds) + " left");
}

void draw_machine(const SideBar& bar, Commands& commands) {
  const float left = px(22);
  const float width = bar.width - left - px(14);
  ImGui::SetCursorPosY(ImGui::GetWindowHeight() - px(machine_height));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  ImGui::SetCursorPosX(left);
  text_quiet("This machine");
  ImGui::SetCursorPosX(left);
  const std::optional<DeviceReport>& device = bar.workspace.device;
  const auto words = [&] {
    Run here{.device = device->resolve("auto")};
    here.hardware = device->hardware(here.device);
    return hardware_text(here);
  };
  const std::string hardware = device ? words() : bar.is_detecting ? "Detecting hardware..." : "Unknown";
  text_cut(hardware, width, palette().text, fonts().semibold, 13.5f);
  ImGui::SetCursorPosX(left);
  const bool knows_load = std::ranges::find(bar.open, "launch") != bar.open.end();
  text_cut(state_text(bar.workspace, knows_load), width, palette().quiet, fonts().regular, small_size);
  ImGui::PopStyleVar();
  ImGui::SetCursorPos(ImVec2(left - px(10), ImGui::GetCursorPosY() + px(8)));
  ImGui::PushStyleColor(ImGuiCol_Button, ImVec4(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::PushFont(fonts().regular, small_size);
  if (ImGui::Button(theme_is_dark() ? "Light theme" : "Dark theme")) commands.push_back(ToggleTheme{});
  mark("side.theme");
  wrapped_tooltip("Ctrl+T", 360);
  ImGui::SameLine(0, 0);
  if (ImGui::Button("A-")) commands.push_back(ChangeScale{-1});
  wrapped_tooltip("Smaller text, Ctrl+-", 360);
  ImGui::SameLine(0, 0);
  if (ImGui::Button("A+")) commands.push_back(ChangeScale{1});
  wrapped_tooltip("Larger text, Ctrl++", 360);
  ImGui::SetCursorPosX(left - px(10));
  if (quiet_button("Ctrl+K  all actions", "side.palette")) commands.push_back(ShowPalette{});
  ImGui::PopFont();
  ImGui::PopStyleColor(3);
}

void draw_folded_machine(const SideBar& bar, Commands& commands) {
  const float side = px(icon_size + 12);
  const float left = (bar.width - side) / 2;
  ImGui::SetCursorPos(ImVec2(left, ImGui::GetWindowHeight() - px(folded_machine_height)));
  if (icon_button("##theme", "theme", side, theme_is_dark() ? "Light theme, Ctrl+T" : "Dark theme, Ctrl+T"))
    commands.push_back(ToggleTheme{});
  mark("side.theme");
  ImGui::SetCursorPosX(left);
  if (icon_button("##palette", "search", side, "All actions, Ctrl+K")) commands.push_back(ShowPalette{});
  mark("side.palette");
}

}  // namespace

// Unfolded: a sixth of the window, within limits.
float side_bar_width(float window_width, bool is_folded) {
  return is_folded ? px(56) : std::clamp(window_width / 6, px(168), px(210));
}

void draw_side_bar(const SideBar& bar, Commands& commands) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, palette().card);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::BeginChild("##side", ImVec2(bar.width, 0), ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  draw_head(bar, commands);
  const float margin = px(bar.is_folded ? 8 : 12);
  const float machine = px(bar.is_folded ? folded_machine_height : machine_height);
  const float room = ImGui::GetWindowHeight() - px(rows_top) - machine;
  constexpr float groups = 4;
  // In a low window a gap stands for a group's title.
  const auto views = static_cast<float>(bar.panels.size());
  const bool has_titles = !bar.is_folded && room >= px(26) * views + px(22) * groups;
  const float title = has_titles ? px(22) : px(4);
  const float all = (ImGui::GetWindowHeight() - px(rows_top) - title * groups) / views;  // without the machine's lines
  const float pitch = std::clamp((room - title * groups) / views, std::clamp(all, px(18), px(24)), px(38));
  float top = px(rows_top) - title;
  for (std::size_t i = 0; i < bar.panels.size(); ++i) {
    if (const char* group = group_at(bar.panels[i].id)) {
      ImGui::SetCursorPos(ImVec2(px(22), top + px(4)));
      if (has_titles) text_quiet(group);
      top += title;
    }
    ImGui::SetCursorPos(ImVec2(margin, top));
    draw_view(bar, i, ImVec2(bar.width - 2 * margin, pitch * 0.84f), commands);
    top += pitch;
  }
  // In a low window the views have priority; everything below them is also in Ctrl+K.
  if (ImGui::GetWindowHeight() - ImGui::GetCursorPosY() >= machine - px(20))
    bar.is_folded ? draw_folded_machine(bar, commands) : draw_machine(bar, commands);
  ImGui::EndChild();
  const ImVec2 corner = ImGui::GetItemRectMax();
  ImGui::GetWindowDrawList()->AddLine(ImVec2(corner.x, ImGui::GetItemRectMin().y), corner, u32(palette().line));
}

}  // namespace stepladder
