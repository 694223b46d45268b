// The Run view's recipe and environment: each value, beside another run's or today's. UI thread.
#pragma once

#include "app/desktop/workspace.h"

namespace stepladder {

struct RunFacts {
  RunId against = 0;  // whose recipe is held against the run's own; 0: nobody's
  bool only_differences = false;

  void draw_recipe(const Workspace& workspace, const RunEntry& shown);
  void draw_environment(const Workspace& workspace, const RunEntry& shown);
};

}  // namespace stepladder
