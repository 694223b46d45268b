// The head of the Run view: the run's name and origin, the buttons that act on it, its figures. UI thread.
#pragma once

#include <array>
#include <utility>

#include "app/desktop/commands.h"
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

// The run's figures in a row. The throughput's interval is the judgement's, as in Compare: from the run's steps and the
// spread between the repeats of its rung.
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
