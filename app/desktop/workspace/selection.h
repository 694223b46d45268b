// The selected ladder, rung and runs. Written by the commands of selection, and when a saved view is opened.
#pragma once

#include <map>
#include <set>

#include "storage/records.h"

namespace stepladder {

struct Selection {
  LadderId ladder = 0;    // 0: the newest
  int rung = -1;          // of the shown ladder; -1: the fastest
  int baseline_rung = 0;  // of the shown ladder
  RunId shown_run =
      0;  // the current run: the last one selected or opened, in any view; 0: Workspace::current_run decides
  std::set<RunId> runs;
  std::map<RunId, int> colours;  // chosen by the user: indices of rung_colour

  void show_ladder(LadderId shown) {
    ladder = shown;
    rung = -1;
    baseline_rung = 0;
  }
};

}  // namespace stepladder
