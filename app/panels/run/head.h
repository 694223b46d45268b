// The head of the Run view: which run it is and where it came from, what can be done to it, its figures. UI thread.
#pragma once

#include <array>

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct RunHead {  // name, origin, the picker of others
  bool renaming = false;
  std::array<char, 256> name{};

  void draw(const Workspace& workspace, const RunEntry& shown, Commands& commands);
};

void draw_run_actions(const Workspace& workspace, const RunEntry& shown, Commands& commands);
void draw_run_figures(const Workspace& workspace, const RunEntry& shown);

}  // namespace stepladder
