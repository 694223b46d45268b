// The head of the Run view: the run's name and origin, the buttons that act on it, its figures. UI thread.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "app/desktop/command.h"
#include "app/desktop/models/background.h"
#include "app/desktop/models/run_snapshot.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct RunHead {  // name, origin, the picker of others
  bool renaming = false;
  std::array<char, 256> name{};

  void draw(const Workspace& workspace, const RunEntry& shown, Commands& commands);
};

// The run that a run is compared with until the user chooses another: the parent of a fork, else the baseline of its
// ladder, as in History and Compare; 0: none.
RunId compared_with(const RunEntry& run, const Workspace& workspace);

// How a run ended that failed, was stopped or lost its loss, and what can be done next. Returns whether to show the
// console.
bool draw_run_end(const Workspace& workspace, const RunEntry& shown, const RunDetail& detail, Commands& commands);

void draw_run_actions(const Workspace& workspace, const RunEntry& shown, Commands& commands);

// The 95 % interval of a run's tokens/s, the judgement's as in Compare: from the run's steps and the spread between the
// other finished runs of its rung, whose steps don't count. Pure.
Interval throughput_ci95(const RunSnapshot& run, std::span<const RunSnapshot> repeats, const HardwareTable& hardware);

// The run's figures in a row.
class RunFigures {
 public:
  void draw(const Workspace& workspace, const RunEntry& shown, Commands& commands);

 private:
  void judge_run(const Workspace& workspace, const RunEntry& shown, Commands& commands);

  Background<std::pair<RunId, Interval>> judging_;
  SnapshotCache snapshots_;
  std::pair<RunId, Interval> tokens_per_s_{};  // of this run, 95 %
};

}  // namespace stepladder
