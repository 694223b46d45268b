// The parts of the Ladder view, each drawn by the file of its name. UI thread.
#pragma once

#include <imgui.h>

#include <array>
#include <list>
#include <string>
#include <vector>

#include "app/desktop/charts/charts.h"
#include "app/desktop/command.h"
#include "app/desktop/commands/ladder_commands.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/system/path_field.h"
#include "app/desktop/widgets.h"
#include "app/desktop/workspace.h"
#include "app/panels/ladder/beside.h"

namespace stepladder {

// The head of the Ladder view: its name and facts, the picker of other ladders, its buttons.
struct LadderHead {
  bool waterfall = false;            // the table's bars
  bool is_sweep = false;             // whether the ladder is one
  bool as_sweep = true;              // then the results are shown by the swept values, instead of the rungs
  std::list<FollowedBeside> beside;  // other ladders
  bool renaming = false;
  std::array<char, 256> name{};
  PathField exports{{.title = "Choose a folder for exports", .kind = FileQuestion::Kind::folder}};

  void rename(const std::string& from);  // begins it
  void draw(const Workspace& workspace, const Ladder& ladder, const LadderModel& model, Commands& commands);
};

// The rows of the Ladder view: a rung's name and change, its bar or its step of the waterfall, its factors and
// verdicts. Only app/panels/ladder/ladder.cpp draws them.
struct LadderTable {
  bool waterfall = false;  // each bar begins at the end of the previous one
  int selected = 0;
  int scrolls_to = -1;  // a rung; -1: none
  int baseline = 0;
  bool can_change = true;            // the project isn't open for reading only
  bool is_over = true;               // if so, a factor without an interval cannot be judged
  std::vector<BesideLadder> beside;  // other ladders, whose rungs of the same stage are shown alongside
  std::vector<BesideRow> rows;       // with other ladders: one per stage (beside_rows); empty: the model's rungs
};

float ladder_table_height(std::size_t rows);  // that they need
void draw_ladder_table(const LadderModel& model, const LadderTable& table, Commands& commands);

// The reason for doubt or, without one, "8.60 of 29.8 TFLOP/s" if the hardware's peak is known, else how the clock was
// read.
void truth_pill(const LadderRung& rung);

// A factor with its interval, or beneath it why it has none: faster and slower have a colour and a sign, both only if
// it can be trusted. The line beneath is cut to `width`.
void text_factor(const Gain& gain, float right, float width, bool is_over, const std::string& why_no_interval = {});

// The one pair that a rung's answer, "Verify gain" and its measurement are about: the rung and the one it stands on.
ConfirmSpeedup verification_of(const LadderRung& rung);
std::string verify_tooltip(const LadderRung& rung, const LadderRung& below);

// The card: one rung's verdicts, flags and figures, with their arithmetic.
void draw_ladder_card(const Workspace& workspace, const LadderModel& model, const LadderRung& rung, int baseline,
                      Commands& commands);

// The charts: losses, their differences from the baseline's, step times.

// The charts' data: `selected` and `baseline` are emphasised, `caption` is printed beneath exported figures.
struct LadderCurves {
  const LadderModel& model;
  int selected = 0;
  int baseline = 0;
  const std::vector<std::string>& caption;
};

// The losses' x axis, and its zoom.
struct LadderAxis {
  ComparisonAxis comparison_axis = ComparisonAxis::steps;
  SharedX x;

  void choose(ComparisonAxis chosen) {
    comparison_axis = chosen;
    x = {};
  }
};

// Draws the loss curves, and beneath them each one's difference from the baseline's.
void draw_ladder_losses(LadderAxis& axis, const LadderCurves& shown, ImVec2 size, Commands& commands);

// `shows_operators` is the switch to the operators; null: the ladder has none.
void draw_ladder_times(const LadderCurves& shown, ImVec2 size, bool* shows_operators, Commands& commands);

// The operators: the selected rung's step time by operator, and the change from the previous rung.
bool has_operators(const LadderModel& model, const Workspace& workspace);  // any rung's

// `shows_operators` is the card's switch: operators or step times.
void draw_ladder_operators(const LadderModel& model, const Workspace& workspace, int selected, ImVec2 size,
                           bool& shows_operators);

// The switch, at the right of the card's first line.
void draw_times_switch(bool& shows_operators);

}  // namespace stepladder
