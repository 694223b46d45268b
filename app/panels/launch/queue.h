// The Launch view's queue: the running run and the queued ones. UI thread.
#pragma once

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

void draw_queue(const Workspace& workspace, Commands& commands);

}  // namespace stepladder
