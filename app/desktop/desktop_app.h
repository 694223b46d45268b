// The frame: drain what has happened, draw the side bar, the messages and the open panels, then carry out what was
// asked for. UI thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/desktop/panel.h"
#include "app/desktop/settings.h"
#include "app/desktop/workspace.h"
#include "app/session.h"

namespace stepladder {

class DesktopApp {
 public:
  // `session` outlives the app; null draws what is in `store` without an engine (screenshots, tests).
  DesktopApp(RunStore& store, Session* session, DesktopSettings settings);

  void ingest();   // top of the frame; never blocks
  void draw();     // inside the frame
  bool execute();  // after the frame; may touch the disk; whether anything was asked for

  // Whether something moves on the screen: a run goes on, or the machine is still being looked at.
  bool is_busy() const;

  void show(const std::string& panel_id);  // throws std::out_of_range for an unknown one
  void set_display_scale(float scale);
  const DesktopSettings& settings() const { return settings_; }
  Workspace& workspace() { return workspace_; }

 private:
  void draw_side_bar(float width);
  void draw_machine();
  void draw_messages();
  void draw_panels();
  void lay_out(unsigned dockspace);
  void handle_keys();
  void execute(const Command& command);
  void complain(const std::string& text);

  RunStore& store_;
  Session* session_;
  DesktopSettings settings_;
  Workspace workspace_;
  Commands commands_;
  std::vector<Panel> panels_;
  std::vector<std::string> open_;  // panels on the screen, left to right; never empty
  bool layout_is_stale_ = true;
  float display_scale_ = 1;
  std::shared_future<DeviceReport> probe_;
  std::string storage_error_;
};

}  // namespace stepladder
