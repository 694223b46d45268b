// The rows of the Ladder view: a rung's name and change, its bar or its step of the waterfall, its factors and
// verdicts. Drawn by app/panels/ladder/ladder.cpp only.
#pragma once

#include "app/desktop/commands.h"
#include "app/desktop/models/ladder_model.h"
#include "app/panels/ladder/beside.h"

namespace stepladder {

struct LadderTable {
  bool waterfall = false;  // each bar begins where the one before ended
  int selected = 0;
  int baseline = 0;
  bool is_over = true;               // then a factor without an interval is one that cannot be judged
  std::vector<BesideLadder> beside;  // other ladders, whose rungs of the same stage are shown beside
  std::vector<BesideRow> rows;       // then one a stage (beside_rows); empty: the model's rungs
};

float ladder_table_height(std::size_t rows);  // that they need
void draw_ladder_table(const LadderModel& model, const LadderTable& table, Commands& commands);

// The mark of a number that isn't trusted: a texture, since colour alone would not show it.
void hatch(ImVec2 low, ImVec2 high);

// A factor with its interval: faster and slower by a colour and a sign, both only where it can be trusted.
void text_factor(const Gain& gain, float right, bool is_over);

}  // namespace stepladder
