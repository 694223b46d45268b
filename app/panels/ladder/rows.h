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
  std::vector<BesideLadder> beside;  // other ladders, whose rungs of the same stage stand beside
  std::vector<BesideRow> rows;       // then one a stage (beside_rows); empty: the model's rungs
};

float ladder_table_height(std::size_t rows);  // that it would like
void draw_ladder_table(const LadderModel& model, const LadderTable& table, Commands& commands);

// What cannot be believed is hatched: a texture, since colour alone would not say it.
void hatch(ImVec2 low, ImVec2 high);

// "faster", "slower": a colour, and a sign for those who do not see it.
void text_factor(double factor, const SpeedUp& verdict, float right, bool trusted, bool is_over);

}  // namespace stepladder
