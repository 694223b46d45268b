// `stepladder record run`: runs a baseline and a candidate in turns, the number fixed beforehand, each pair in random
// order. Everything is in one folder:
//   .state/plan.json          commands without secrets, folders, order and machine, written before the first run
//   baseline/01.log ...       the output of each run; each of the two folders is a pool
//   candidate/01.log ...
//   .state/baseline-01.json   how the run ended
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/host/held_folder.h"
#include "app/record/measured_command.h"
#include "app/runs/run_json.h"
#include "storage/analysis/compare.h"
#include "storage/analysis/means/mean_test.h"

namespace stepladder {

struct ExperimentSide {
  std::vector<std::string> command;
  std::filesystem::path folder;  // absolute

  bool operator==(const ExperimentSide&) const = default;
};

struct ExperimentPlan {
  ExperimentSide baseline, candidate;
  int runs = 0;             // of each side
  std::vector<bool> order;  // of all runs: whether it is the candidate's
  Json machine;
};

// A run of the plan.
struct ExperimentRun {
  bool is_candidate = false;
  int number = 0;  // from 1, within its side
  MeasuredCommand command;
};

// The result by the runs' wall-clock times, without reading their logs.
struct WallTimes {
  SampleFigures baseline, candidate;  // seconds
  double speedup = missing;           // of the means
  Interval ci95;
  Verdict verdict = Verdict::cannot_tell;
};

class Experiment {
 public:
  // Creates the folder and its plan, or continues an existing one: then `asked` must be the same, or have no commands
  // and no runs. A plan that this user hasn't ordered for this folder needs the commands once more. Holds the folder
  // for this process. Throws UsageError and StorageError.
  Experiment(const std::filesystem::path& folder, ExperimentPlan asked, std::uint64_t seed);

  const ExperimentPlan& plan() const { return plan_; }
  const std::vector<ExperimentRun>& runs() const { return runs_; }
  std::filesystem::path baseline_folder() const { return folder_ / "baseline"; }
  std::filesystem::path candidate_folder() const { return folder_ / "candidate"; }

  std::size_t done() const;  // runs that have ended with exit status 0
  WallTimes wall_times() const;

  // Runs what remains. `begins` is called before each run that isn't done. Returns false if it was stopped. Throws
  // StorageError if a command fails; its log is kept as NAME.failed-K.log, and the next call runs it once more.
  bool go_on(const std::function<void(const ExperimentRun&)>& begins, const std::function<bool()>& stop);

 private:
  const std::filesystem::path folder_;
  std::optional<HeldFolder> held_;
  ExperimentPlan plan_;
  std::vector<ExperimentRun> runs_;
};

}  // namespace stepladder
