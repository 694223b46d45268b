// The Run view's curves of loss and step time, with those of the run that it is compared with. UI thread.
#pragma once

#include <imgui.h>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

// `against` may be null.
void draw_run_charts(SharedX& shared, const Workspace& workspace, const RunEntry& shown, const RunEntry* against,
                     ImVec2 room, Commands& commands);

}  // namespace stepladder
