// The head of the Run view: the run's name and origin, the buttons that act on it, its figures. UI thread.
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
