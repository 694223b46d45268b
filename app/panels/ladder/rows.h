// The rows of the Ladder view: a rung's name and change, its bar or its step of the waterfall, its factors and
// verdicts. Only app/panels/ladder/ladder.cpp draws them.
#pragma once

#include "app/desktop/command.h"
#include "app/desktop/models/ladder_model.h"
#include "app/panels/ladder/beside.h"

namespace stepladder {

struct LadderTable {
  bool waterfall = false;  // each bar begins at the end of the previous one
  int selected = 0;
  bool shows_selected = false;  // scrolls to it
  int baseline = 0;
  bool is_over = true;               // if so, a factor without an interval cannot be judged
  std::vector<BesideLadder> beside;  // other ladders, whose rungs of the same stage are shown alongside
  std::vector<BesideRow> rows;       // with other ladders: one per stage (beside_rows); empty: the model's rungs
};

float ladder_table_height(std::size_t rows);  // that they need
void draw_ladder_table(const LadderModel& model, const LadderTable& table, Commands& commands);

// Marks a number that isn't trusted by a texture, since colour alone isn't enough.
void hatch(ImVec2 low, ImVec2 high);

// The reason for doubt or, without one, "8.60 of 29.8 TFLOP/s" if the hardware's peak is known, else how the clock was
// read.
void truth_pill(const LadderRung& rung);

// A factor with its interval: faster and slower have a colour and a sign, both only if it can be trusted.
void text_factor(const Gain& gain, float right, bool is_over);

}  // namespace stepladder
