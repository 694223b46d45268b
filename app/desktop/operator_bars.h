// Shows the time of a step by kind of operator: a bar for each, next to another run's if given. UI thread, inside a
// frame.
#pragma once

#include <imgui.h>

#include "storage/analysis/step_profile.h"

namespace stepladder {

// Fills the available width. `before` (may be null) gets thin grey bars, and numbers show the change since.
void draw_operator_bars(const StepProfile& shown, const ImVec4& colour, const StepProfile* before);

}  // namespace stepladder
