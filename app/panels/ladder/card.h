// The Ladder view's card: what is to be said of one rung, with the sums, so that a reader can redo them. UI thread.
#pragma once

#include "app/desktop/commands.h"
#include "app/desktop/models/ladder_model.h"

namespace stepladder {

void draw_ladder_card(const LadderModel& model, const LadderRung& rung, int baseline, Commands& commands);

}  // namespace stepladder
