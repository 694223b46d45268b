// The Run view's console, text samples and checkpoints. UI thread.
#pragma once

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

void draw_run_console(const RunDetail& detail);
void draw_run_samples(int& sample, const RunDetail& detail);  // the selected one; -1: the newest
void draw_run_checkpoints(const RunEntry& shown, const RunDetail& detail, Commands& commands);

}  // namespace stepladder
