// What a series of tries was begun with. The plan that is run is an order of this user (app/record/experiment_plan.h);
// the project and the folder only show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/record/log_figure.h"
#include "app/runs/run_json.h"
#include "storage/analysis/verdict/try_verdict.h"

namespace stepladder {

// A figure that may give way by so much.
struct TryGuard {
  FigureQuestion figure;
  Direction better = Direction::unknown;  // then it may move neither way
  double tolerance = 0;                   // in its unit, or a share of the kept state's mean
  bool is_share = false;
};

// A path that no try may change.
struct TrySeal {
  std::string path;      // below the checkout's top, or absolute
  bool in_tree = false;  // part of the states; else its content and stamp are remembered
  std::string content, stamp;
};

struct TryPlan {
  std::vector<std::string> command;
  std::string checkout;  // its top
  std::string folder;    // that the command runs in, below the top
  FigureQuestion figure;
  bool guesses_direction = false;  // of a metric of which nobody says which values are better: no gain is kept
  std::vector<TryGuard> guards;
  std::vector<TrySeal> seals;
  std::vector<std::string> links;  // ignored inputs
  std::string holdout;           // for the shell: measures a state at the end only, in the copy where its training ran
  std::int64_t first_runs = 6;   // of the unchanged state, for the noise
  std::int64_t budget_runs = 0;  // all runs together; 0: no limit
  double budget_s = 0;           // from the beginning; 0: no limit
  double quiet_s = 0;            // how long each run waits for a quiet machine
  std::string machine;           // of the project, that all runs are done on; empty: this one
  std::string there;             // its folder with the ignored inputs; empty: the one called as the checkout is here
  FalseKeeps false_keeps = FalseKeeps::few;
};

Json plan_json(const TryPlan& plan);
TryPlan try_plan_from(const Json& json);  // throws StorageError

// "val_loss=0.01", "memory=2%". Throws UsageError.
TryGuard guard_from(const std::string& text);

// "8h", "90m", "1h30m", "3600": seconds. Throws UsageError.
double duration_from(const std::string& text);

}  // namespace stepladder
