// Commands that select what the views show.
#pragma once

#include <vector>

#include "app/desktop/command.h"

namespace stepladder {

struct SelectLadder {
  LadderId ladder = 0;
};
struct SelectRung {
  int rung = 0;
};
struct SelectRun {
  RunId run = 0;
  bool selected = true;
};
struct SelectRuns {  // only these
  std::vector<RunId> runs;
};
struct ClearSelection {};
struct SelectBaseline {  // of the shown ladder
  int rung = 0;
};
struct ColourRun {  // in every view
  RunId run = 0;
  int colour = -1;  // an index of rung_colour; -1: its rung's again
};
struct ChooseRun {  // it becomes the current run
  RunId run = 0;
};
struct OpenRun {  // in the Run view
  RunId run = 0;
};

}  // namespace stepladder
