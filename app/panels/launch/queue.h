// The Launch view's queue: the run that trains now and those that wait for it. UI thread.
#pragma once

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

void draw_queue(const Workspace& workspace, Commands& commands);

}  // namespace stepladder
