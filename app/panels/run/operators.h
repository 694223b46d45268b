// The Run view's operators: its step time by operator, next to that of the run that it is compared with. UI thread.
#pragma once

#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

struct RunOperators {
  std::vector<OperatorTime> rows;  // by_name()
  RunId made_of = 0;
  double made_at = missing;      // the profile's `at`
  double made_for_ms = missing;  // the step that it is scaled to
};

void draw_run_operators(RunOperators& operators, const Workspace& workspace, const RunEntry& shown,
                        const RunEntry* against, Commands& commands);

}  // namespace stepladder
