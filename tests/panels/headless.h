// The desktop drawn without a window, for tests.
#pragma once

#include <imgui.h>
#include <imgui_internal.h>  // InputEventsQueue
#include <implot.h>

#include <chrono>
#include <functional>
#include <thread>

#include "app/desktop/desktop_app.h"
#include "app/desktop/frames/input_frame.h"
#include "app/desktop/theme.h"
#include "app/desktop/ui_test_anchors.h"

namespace stepladder {

// Reads at once what a model asked for.
inline void read_now(const DataRequests& asked, RunStore& store, Workspace& workspace) {
  for (const RunId run : asked.series) workspace.load_series(store, run);
  for (const auto& [run, most] : asked.excerpts) workspace.load_excerpt(store, run, most);
  for (const auto& [run, quantity, zoom] : asked.curves)
    workspace.keep(read_curve(store, workspace.wanted(run, quantity, zoom)));
}

// ImGui with no renderer behind it.
class Headless {
 public:
  Headless() {
    ImGui::CreateContext();
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = ImVec2(1280, 720);
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;              // as the window
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;  // as OpenGL 3
    load_fonts("");
    apply_theme(true, 1);
  }
  ~Headless() {
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    }
    ImPlot::DestroyContext();
    ImGui::DestroyContext();
  }
  Headless(const Headless&) = delete;
  Headless& operator=(const Headless&) = delete;

  // Draws a frame; returns the number of corners in it.
  int frame(DesktopApp& app) {
    app.ingest();
    input_frames_.begin();
    app.draw();
    render();
    asked_ = app.execute();
    return ImGui::GetDrawData()->TotalVtxCount;
  }
  // Ends a frame as a renderer does.
  static void render() {
    ImGui::Render();
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
      texture->SetTexID(1);
      texture->SetStatus(ImTextureStatus_OK);
    }
  }

  // Draws frames until other threads have made it true, even on a slow machine. Returns whether they have.
  bool frames_until(DesktopApp& app, const std::function<bool()>& is_so) {
    ui_test_anchors::keep();
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!is_so() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      frame(app);
    }
    return is_so();
  }

  // All input, and three frames more.
  void frames(DesktopApp& app) {
    while (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0) frame(app);
    for (int i = 0; i < 3; ++i) frame(app);
  }

  bool asked() const { return asked_; }  // whether a command was carried out after the last frame

  // Clicks like a user, as far as ImGui can tell. Returns whether the anchor exists.
  bool click(DesktopApp& app, const std::string& anchor) {
    ui_test_anchors::keep();
    frames(app);
    auto box = ui_test_anchors::find(anchor);
    for (int i = 0; box && i < 5; ++i) {  // what flows in lines takes some frames to find its place
      const float before = box->x0;
      frame(app);
      box = ui_test_anchors::find(anchor);
      if (box && box->x0 == before) break;
    }
    if (!box) return false;
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent((box->x0 + box->x1) / 2, (box->y0 + box->y1) / 2);
    frame(app);
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(0, down);
      for (int i = 0; i < 2; ++i) frame(app);
    }
    return true;
  }
  void press(DesktopApp& app, ImGuiKey key, bool with_ctrl = false) {
    ImGuiIO& io = ImGui::GetIO();
    for (const bool down : {true, false}) {
      if (with_ctrl) io.AddKeyEvent(ImGuiMod_Ctrl, down);
      io.AddKeyEvent(key, down);
      frames(app);
    }
  }
  // Replaces the text of a field.
  bool type(DesktopApp& app, const std::string& anchor, const std::string& text) {
    if (!click(app, anchor)) return false;
    press(app, ImGuiKey_A, true);
    press(app, ImGuiKey_Delete);
    ImGui::GetIO().AddInputCharactersUTF8(text.c_str());
    frames(app);
    press(app, ImGuiKey_Enter);
    return true;
  }

 private:
  bool asked_ = false;
  InputFrames input_frames_;
};

}  // namespace stepladder
