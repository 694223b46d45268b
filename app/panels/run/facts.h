// The Run view's recipe and environment: each value, next to another run's or the current environment's. UI thread.
#pragma once

#include "app/desktop/workspace.h"

namespace stepladder {

struct RunFacts {
  RunId against = 0;  // the run whose recipe is shown next to its own; 0: none
  bool only_differences = false;

  void draw_recipe(const Workspace& workspace, const RunEntry& shown);
  void draw_environment(const Workspace& workspace, const RunEntry& shown);
};

}  // namespace stepladder
