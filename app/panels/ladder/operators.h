// The Ladder view's operators: the selected rung's step time by operator, and the change from the previous rung. UI
// thread.
#pragma once

#include <imgui.h>

#include "app/desktop/models/ladder_model.h"
#include "app/desktop/workspace.h"

namespace stepladder {

bool has_operators(const LadderModel& model, const Workspace& workspace);  // any rung's

// `shows_operators` is the card's switch: operators or step times.
void draw_ladder_operators(const LadderModel& model, const Workspace& workspace, int selected, ImVec2 size,
                           bool& shows_operators);

// The switch, at the right of the card's first line.
void draw_times_switch(bool& shows_operators);

}  // namespace stepladder
