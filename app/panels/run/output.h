// What a run wrote and saved: its console, its samples of text, its checkpoints. UI thread.
#pragma once

#include "app/desktop/commands.h"
#include "app/desktop/workspace.h"

namespace stepladder {

void draw_run_console(const RunDetail& detail);
void draw_run_samples(int& sample, const RunDetail& detail);  // which is read; -1: the newest
void draw_run_checkpoints(const RunEntry& shown, const RunDetail& detail, Commands& commands);

}  // namespace stepladder
