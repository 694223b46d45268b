// A panel is one view of the window: one file each in app/panels/, one line each in panels.def.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct PanelEvent;  // app/desktop/panel_events.h

struct Panel {
  std::string id;     // "ladder": its name for `screenshot --view` and for the layout
  std::string title;  // in the side bar
  // Called once a frame while the panel is open, inside its window. Reads the workspace, pushes commands, keeps its own
  // small state; touches neither disk nor engine.
  std::function<void(const Workspace&, Commands&)> draw;
  // Called between frames when a command has something for this panel.
  std::function<void(const PanelEvent&)> receive = {};
  // Pushes commands that save what the user typed. Called in frames that don't draw the panel, and before the window
  // closes.
  std::function<void(Commands&)> leave = {};
  // The panel's state that the next start restores, as text in its own format; null if it has none.
  std::function<std::string()> remember = {};
  std::function<void(const std::string&)> recall = {};
  // What a saved view keeps of the panel (app/runs/saved_view.h): like `remember`, but with the runs of this project
  // as references. `show_view` leaves alone what the state doesn't mention; it may be anybody's JSON.
  std::function<nlohmann::json(const Workspace&)> view = {};
  std::function<void(const nlohmann::json&, const Workspace&)> show_view = {};
  // The smallest size in which everything is readable, before scaling; in a smaller window the panel scrolls. 0: the
  // panel adapts to any size.
  float least_width = 640;
  float least_height = 480;
};

namespace panels {
#define PANEL(name) Panel name();
#include "app/panels/panels.def"
#undef PANEL
}  // namespace panels

// Fresh panels, in the order of the side bar.
std::vector<Panel> all_panels();

}  // namespace stepladder
