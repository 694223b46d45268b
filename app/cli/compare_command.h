// `stepladder compare`: runs against a base run; factors, intervals, verdicts, loss parity, trust.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/cli/subcommand.h"
#include "storage/analysis/batch_split.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/target_search.h"

namespace stepladder {

struct ComparedRun {
  LoadedRun loaded;
  std::vector<LoadedRun> repeats;  // the other finished runs of its rung; with steps for the base only
  int repeats_known = 1;           // how many runs its rung has, whatever became of them
};

// A run with the other finished runs of its rung; with their steps where `with_steps`, for how far apart losses may be.
ComparedRun load_compared(RunStore& store, const Run& run, bool with_steps, std::int64_t most_steps);

// One run against a base, with everything that either table or JSON says.
struct Comparison {
  const ComparedRun* run = nullptr;
  RungJudgement judgement;              // of this run alone; its factors are over the run before it and over the base
  std::optional<TargetReached> target;  // where it reached the base's final loss, or the one asked for, if looked for
  std::optional<BatchSplit> batch;      // where the batch changed too
  double break_even_steps = missing;    // that its compiling takes to pay back
};
struct Comparisons {
  const ComparedRun* base = nullptr;
  RungJudgement base_judgement;
  std::vector<Comparison> runs;
};

// `others`: runs among which one may separate a change from a bigger batch. Looks for no target.
Comparisons compare_runs(const ComparedRun& base, std::span<const ComparedRun> runs, double noise_floor,
                         const HardwareTable& hardware, const std::vector<RunAndSummary>& others = {});
Json compare_json(const Comparisons& compared);
std::string compare_table(const Comparisons& compared);

}  // namespace stepladder
