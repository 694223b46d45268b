// The Run view's recipe and environment: each value, beside that of another run or of the current environment. UI
// thread.
#pragma once

#include "app/desktop/workspace.h"

namespace stepladder {

struct RunFacts {
  RunId against = 0;  // whose recipe is shown beside the run's own; 0: none
  bool only_differences = false;

  void draw_recipe(const Workspace& workspace, const RunEntry& shown);
  void draw_environment(const Workspace& workspace, const RunEntry& shown);
};

}  // namespace stepladder
