// The Ladder view's card: one rung's verdicts, flags and figures, with their arithmetic. UI thread.
#pragma once

#include "app/desktop/command.h"
#include "app/desktop/models/ladder_model.h"

namespace stepladder {

void draw_ladder_card(const LadderModel& model, const LadderRung& rung, int baseline, Commands& commands);

}  // namespace stepladder
