// `stepladder compare`: compares runs with a base run by factors, intervals, verdicts, loss parity and trust.
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
};

// Loads a run with the other finished runs of its rung, `with_steps` including their steps, for the spread of losses.
ComparedRun load_compared(RunStore& store, const Run& run, bool with_steps, std::int64_t most_steps);

// One run against a base, with everything that the table and the JSON show.
struct Comparison {
  const ComparedRun* run = nullptr;
  RungJudgement judgement;  // of this run alone; its factors are relative to the previous run and to the base
  std::optional<TargetReached> target;  // of the base's final loss, or the one asked for; unset: not searched for
  std::optional<BatchSplit> batch;      // if the batch changed too
  double break_even_steps = missing;    // until its compiling pays off
};
struct Comparisons {
  const ComparedRun* base = nullptr;
  RungJudgement base_judgement;
  std::vector<Comparison> runs;
  std::optional<double> target_loss;         // if one was asked for
  std::optional<TargetReached> base_target;  // then: where the base reached it
};

// `others`: runs that may separate a change from a bigger batch. Doesn't set `target`.
Comparisons compare_runs(const ComparedRun& base, std::span<const ComparedRun> runs, double noise_floor,
                         const HardwareTable& hardware, const std::vector<RunAndSummary>& others = {});
Json compare_json(const Comparisons& compared);
std::string compare_table(const Comparisons& compared);

}  // namespace stepladder
