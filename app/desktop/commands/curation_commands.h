// Commands that change what the project says about its runs and ladders, and the one that reverts the last change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "storage/database/curation.h"

namespace stepladder {

// A change that can be undone; `what` is in the past tense ("Archived 3 runs"). It is applied to what is stored when it
// is carried out, which may be later than asked for and after other changes of the same runs.
struct Curate {
  std::string what;
  std::vector<RunId> runs;
  CurationChange change;
};
struct RenameRun {
  RunId run = 0;
  std::string name;
};
struct RenameLadder {
  LadderId ladder = 0;
  std::string name;
};
struct DeleteLadder {  // its runs go to the bin, with an undo
  LadderId ladder = 0;
};
struct RestoreRuns {  // out of the bin
  std::vector<RunId> runs;
};
struct EmptyBin {  // deletes its runs permanently, with their checkpoints; asks first unless `sure`
  bool sure = false;
};
struct Undo {};

// Changes the runs, between frames, and returns what changes them back. Throws StorageError, and std::runtime_error
// with the reason if a run is still running.
std::function<void()> curate_runs(DesktopState& desktop, const Curate& asked);

// Deletes what was put into the bin before a time, on another thread; a notice follows, unless nothing was deleted.
void empty_bin(DesktopState& desktop, double deleted_before);

}  // namespace stepladder
