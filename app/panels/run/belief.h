// The Run view's side: plausibility of the numbers, timing and hardware. UI thread.
#pragma once

#include "app/desktop/workspace.h"

namespace stepladder {

void draw_run_belief(const Workspace& workspace, const RunEntry& shown, const RunDetail* detail);  // null: not read yet

}  // namespace stepladder
