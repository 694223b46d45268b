// The bar at the left of the window: the views, the machine and its state, and a few buttons; folded, only their icons.
// UI thread, inside a frame.
#pragma once

#include <string>
#include <vector>

#include "app/desktop/panel.h"

namespace stepladder {

struct SideBar {
  const std::vector<Panel>& panels;
  const std::vector<std::string>& open;  // ids of the views on the screen
  const Workspace& workspace;
  float width = 0;
  bool is_folded = false;
  bool is_detecting = false;  // the hardware, if it isn't known yet
};

float side_bar_width(float window_width, bool is_folded);
void draw_side_bar(const SideBar& bar, Commands& commands);

}  // namespace stepladder
