#include "app/desktop/desktop_app.h"

#include <imgui.h>
#include <imgui_internal.h>  // DockBuilder

#include <algorithm>
#include <stdexcept>

#include "app/desktop/landmarks.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/environment.h"
#include "app/format.h"
#include "engine/tokens.h"

namespace stepladder {
namespace {

constexpr float side_bar_width = 210;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace

std::vector<Panel> all_panels() {
  return {
#define PANEL(name) panels::name(),
#include "app/panels/panels.def"
#undef PANEL
  };
}

DesktopApp::DesktopApp(RunStore& store, Session* session, DesktopSettings settings)
    : store_(store), session_(session), settings_(std::move(settings)), panels_(all_panels()) {
  workspace_.database = store.file().string();
  workspace_.hardware = HardwareTable::load(assets_folder());
  workspace_.load(store);
  workspace_.device = std::nullopt;
  open_ = {panels_.front().id};
  try {
    show(settings_.panel);
  } catch (const std::out_of_range&) {  // a panel of another version: the first one will do
  }
}

void DesktopApp::show(const std::string& panel_id) {
  const auto found = std::find_if(panels_.begin(), panels_.end(), [&](const Panel& p) { return p.id == panel_id; });
  if (found == panels_.end()) throw std::out_of_range(panel_id);
  if (open_ == std::vector{panel_id}) return;
  open_ = {panel_id};
  settings_.panel = panel_id;
  layout_is_stale_ = true;
}

void DesktopApp::set_display_scale(float scale) {
  display_scale_ = scale;
  apply_theme(settings_.dark, scale * settings_.scale);
}

bool DesktopApp::is_busy() const {
  return workspace_.running() || !workspace_.waiting().empty() ||
         (session_ && !workspace_.device && workspace_.device_problem.empty());
}

void DesktopApp::complain(const std::string& text) {
  workspace_.messages.push_back({text, true});
}

void DesktopApp::ingest() {
  if (!session_) return;
  for (const RunEvent& event : session_->drain()) {
    if (const auto* saved = std::get_if<CheckpointSaved>(&event); saved && !saved->error.empty()) {
      complain("The checkpoint of step " + grouped(saved->step) + " was not saved: " + saved->error);
    }
    if (workspace_.ingest(event)) {
      const auto& ended = std::get<RunEnded>(event);
      const RunEntry* entry = workspace_.find(ended.run);
      if (entry && ended.status == RunStatus::failed) complain(entry->run.name + " failed: " + ended.reason);
    }
  }
  if (const RunEntry* running = workspace_.running()) {
    workspace_.order_queue(session_->queue());
    workspace_.is_paused = session_->paused(running->run.id);
  }
  if (storage_error_.empty()) {
    storage_error_ = session_->storage_error();
    if (!storage_error_.empty()) complain("Runs were stopped, because steps can no longer be kept: " + storage_error_);
  }
  // Asked for after the first frame, so that the window is there before LibTorch is.
  if (!probe_.valid()) {
    if (ImGui::GetFrameCount() > 1) probe_ = session_->probe();
  } else if (!workspace_.device && workspace_.device_problem.empty() &&
             probe_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    try {
      workspace_.device = probe_.get();
    } catch (const std::exception& error) {
      workspace_.device_problem = error.what();
      complain(std::string("Runs cannot be launched: ") + error.what());
    }
  }
}

void DesktopApp::draw() {
  handle_keys();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::Begin("##frame", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoNavFocus);
  ImGui::PopStyleVar();
  const float width = px(side_bar_width);
  draw_side_bar(width);
  ImGui::SameLine(0, 0);
  ImGui::BeginGroup();
  draw_messages();
  const ImGuiID dockspace = ImGui::GetID("dock");
  if (layout_is_stale_) lay_out(dockspace);
  ImGui::DockSpace(dockspace, ImVec2(0, 0));
  ImGui::EndGroup();
  ImGui::End();
  draw_panels();
  landmarks::write_frame();
}

// The panels side by side, in the order in which they were opened. From there on they are the user's to drag.
void DesktopApp::lay_out(unsigned dockspace) {
  layout_is_stale_ = false;
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
  // One panel alone needs no tab; side by side they can be dragged and closed by theirs.
  if (open_.size() == 1) ImGui::DockBuilderGetNode(rest)->LocalFlags |= ImGuiDockNodeFlags_NoTabBar;
  ImGui::DockBuilderFinish(dockspace);
}

void DesktopApp::draw_panels() {
  for (Panel& panel : panels_) {
    const auto place = std::find(open_.begin(), open_.end(), panel.id);
    if (place == open_.end()) continue;
    bool keep = true;
    // The id is the window's name for docking; the title is what the tab says.
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(26), px(20)));
    const std::string name = panel.title + "###" + panel.id;
    const bool is_visible = ImGui::Begin(name.c_str(), open_.size() > 1 ? &keep : nullptr, ImGuiWindowFlags_NoCollapse);
    ImGui::PopStyleVar();
    if (is_visible) panel.draw(workspace_, commands_);
    ImGui::End();
    if (!keep) {
      open_.erase(place);
      layout_is_stale_ = true;
    }
  }
}

void DesktopApp::draw_side_bar(float width) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, palette().card);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::BeginChild("##side", ImVec2(width, 0), ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  ImGui::SetCursorPos(ImVec2(px(22), px(22)));
  ImGui::PushFont(fonts().display, 19);
  ImGui::TextUnformatted("Stepladder");
  ImGui::PopFont();
  ImGui::SetCursorPosY(px(70));
  const float margin = px(12);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    const Panel& panel = panels_[i];
    const bool is_open = std::find(open_.begin(), open_.end(), panel.id) != open_.end();
    ImGui::SetCursorPosX(margin);
    ImGui::PushID(panel.id.c_str());
    const ImVec2 size(width - 2 * margin, px(32));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::InvisibleButton("##open", size)) {
      commands_.push_back(ShowPanel{panel.id, ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyShift});
    }
    mark("side." + panel.id);
    const bool hovered = ImGui::IsItemHovered();
    if (hovered) ImGui::SetItemTooltip("Ctrl+%d; with Ctrl held down: beside the others", static_cast<int>(i) + 1);
    if (is_open || hovered) {
      draw->AddRectFilled(at, ImVec2(at.x + size.x, at.y + size.y), u32(palette().accent, is_open ? 0.18f : 0.08f),
                          px(6));
    }
    ImGui::PushFont(is_open ? fonts().semibold : fonts().regular, text_size);
    draw->AddText(ImVec2(at.x + px(12), at.y + (size.y - ImGui::GetTextLineHeight()) / 2),
                  u32(is_open ? palette().accent : palette().text), panel.title.c_str());
    ImGui::PopFont();
    if (panel.id == "live" && workspace_.running()) {
      draw->AddCircleFilled(ImVec2(at.x + size.x - px(16), at.y + size.y / 2), px(4), u32(palette().good));
    }
    ImGui::PopID();
  }
  draw_machine();
  ImGui::EndChild();
  const ImVec2 corner = ImGui::GetItemRectMax();
  ImGui::GetWindowDrawList()->AddLine(ImVec2(corner.x, ImGui::GetItemRectMin().y), corner, u32(palette().line));
}

void DesktopApp::draw_machine() {
  const float left = px(22);
  const float width = px(side_bar_width) - left - px(14);
  ImGui::SetCursorPosY(std::max(ImGui::GetCursorPosY() + px(20), ImGui::GetWindowHeight() - px(148)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(4)));
  ImGui::SetCursorPosX(left);
  text_quiet("This machine");
  ImGui::SetCursorPosX(left);
  const std::optional<DeviceReport>& device = workspace_.device;
  if (device) {
    text_cut(device->hardware(device->resolve("auto")), width, palette().text, fonts().semibold, 13.5f);
  } else {
    text_cut(session_ && workspace_.device_problem.empty() ? "looking..." : "not asked", width, palette().text,
             fonts().semibold, 13.5f);
  }
  ImGui::SetCursorPosX(left);
  std::string state = !device ? "" : device->gpus.empty() ? "no GPU  -  " : "GPU  -  ";
  const RunEntry* running = workspace_.running();
  if (running) {
    const double seconds = workspace_.seconds_left_of_all();
    state += "training" + (is_missing(seconds) ? "" : ", " + duration_text(seconds) + " left");
  } else {
    state += "idle";
  }
  text_cut(state, width, palette().quiet, fonts().regular, small_size);
  ImGui::PopStyleVar();
  ImGui::SetCursorPos(ImVec2(left - px(10), ImGui::GetCursorPosY() + px(8)));
  ImGui::PushStyleColor(ImGuiCol_Button, ImVec4(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::PushFont(fonts().regular, small_size);
  if (ImGui::Button(settings_.dark ? "Light theme" : "Dark theme")) commands_.push_back(ToggleTheme{});
  mark("side.theme");
  ImGui::SetItemTooltip("Ctrl+T");
  ImGui::SameLine(0, 0);
  if (ImGui::Button("A-")) commands_.push_back(ChangeScale{-1});
  ImGui::SetItemTooltip("Smaller, Ctrl+-");
  ImGui::SameLine(0, 0);
  if (ImGui::Button("A+")) commands_.push_back(ChangeScale{1});
  ImGui::SetItemTooltip("Larger, Ctrl++");
  ImGui::PopFont();
  ImGui::PopStyleColor(3);
}

void DesktopApp::draw_messages() {
  for (std::size_t i = 0; i < workspace_.messages.size(); ++i) {
    const Message& message = workspace_.messages[i];
    ImGui::PushID(static_cast<int>(i));
    const ImVec4 colour = message.is_error ? palette().bad : palette().accent;
    ImGui::PushStyleColor(ImGuiCol_ChildBg, faded(colour, 0.14f));
    ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(26), px(8)));
    ImGui::BeginChild("##message", ImVec2(0, 0), ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_AlwaysUseWindowPadding);
    ImGui::PopStyleVar(2);
    ImGui::PopStyleColor();
    const float button = px(90);
    ImGui::AlignTextToFramePadding();
    ImGui::PushTextWrapPos(ImGui::GetWindowWidth() - button - px(40));
    ImGui::TextUnformatted(message.text.c_str());
    ImGui::PopTextWrapPos();
    ImGui::SameLine(ImGui::GetWindowWidth() - button - px(20));
    if (quiet_button("Dismiss")) commands_.push_back(DismissMessage{i});
    mark("message.dismiss");
    ImGui::EndChild();
    ImGui::PopID();
  }
}

void DesktopApp::handle_keys() {
  for (std::size_t i = 0; i < panels_.size() && i < 9; ++i) {
    if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | static_cast<ImGuiKey>(ImGuiKey_1 + static_cast<int>(i)))) {
      commands_.push_back(ShowPanel{panels_[i].id});
    }
  }
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_T)) commands_.push_back(ToggleTheme{});
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Equal) ||
      ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_KeypadAdd) ||
      ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Equal)) {
    commands_.push_back(ChangeScale{1});
  }
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Minus)) commands_.push_back(ChangeScale{-1});
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_0)) commands_.push_back(ChangeScale{0});
}

bool DesktopApp::execute() {
  const Commands asked = std::exchange(commands_, {});
  for (const Command& command : asked) {
    try {
      execute(command);
    } catch (const std::exception& error) {  // RecipeError, DataError, StorageError: the window lives on
      complain(error.what());
    }
  }
  return !asked.empty();
}

void DesktopApp::execute(const Command& command) {
  std::visit(
      Overloaded{
          [this](const LaunchLadder& launch) {
            if (!session_ || !workspace_.device) throw std::runtime_error("This machine is still being looked at.");
            const LaunchedLadder launched = session_->launch_ladder(launch.request, *workspace_.device);
            workspace_.add_ladder(store_, launched.ladder, launched.runs);
            show("live");
          },
          [this](const StopRun& stop) {
            if (session_) session_->stop(stop.run);
          },
          [this](const StopAll&) {
            if (session_) session_->stop_all();
          },
          [this](const PauseRun& pause) {
            if (session_) session_->pause(pause.run, pause.paused);
          },
          [this](const MoveInQueue& move) {
            if (session_) session_->move_to(move.run, move.place);
          },
          [this](const LoadSeries& load) { workspace_.load_series(store_, load.run); },
          [this](const ShowPanel& panel) {
            if (!panel.beside) {
              show(panel.id);
            } else if (std::find(open_.begin(), open_.end(), panel.id) == open_.end()) {
              open_.push_back(panel.id);
              layout_is_stale_ = true;
            }
          },
          [this](const SelectLadder& select) {
            workspace_.selected_ladder = select.ladder;
            workspace_.selected_rung = -1;
          },
          [this](const SelectRung& select) { workspace_.selected_rung = select.rung; },
          [this](const SelectRun& select) {
            if (select.selected) {
              workspace_.selected_runs.insert(select.run);
            } else {
              workspace_.selected_runs.erase(select.run);
            }
          },
          [this](const ClearSelection&) { workspace_.selected_runs.clear(); },
          [this](const ToggleTheme&) {
            settings_.dark = !settings_.dark;
            set_display_scale(display_scale_);
          },
          [this](const ChangeScale& change) {
            settings_.scale =
                change.direction == 0
                    ? 1
                    : std::clamp(settings_.scale + 0.1f * static_cast<float>(change.direction), 0.6f, 3.0f);
            set_display_scale(display_scale_);
          },
          [this](const DismissMessage& dismiss) {
            if (dismiss.index < workspace_.messages.size()) {
              workspace_.messages.erase(workspace_.messages.begin() + static_cast<std::ptrdiff_t>(dismiss.index));
            }
          },
      },
      command);
}

}  // namespace stepladder
