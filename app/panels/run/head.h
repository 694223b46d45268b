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
