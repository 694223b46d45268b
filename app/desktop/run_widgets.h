// Parts that several views show of runs. UI thread, inside a frame.
#pragma once

#include <optional>
#include <string>

#include "app/desktop/widgets.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/compare.h"

namespace stepladder {

Tone status_tone(RunStatus status);

// "= same", "worse by 0.0312", "diverged", "not comparable".
void loss_pill(const LossParity& loss);

// All runs, the newest first; the one that was picked. `words` stands in the closed box, `width` pixels wide.
std::optional<RunId> run_combo(const char* id, const std::string& words, const Workspace& workspace, RunId chosen,
                               float width);

}  // namespace stepladder
