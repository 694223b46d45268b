// `stepladder compare`: runs against a base run; factors, intervals, verdicts, loss parity.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/cli/subcommand.h"
#include "storage/analysis/batch_split.h"
#include "storage/analysis/target_search.h"

namespace stepladder {

// What is compared: of a long run not all steps but an excerpt (app/excerpt.h).
struct ComparedRun {
  LoadedRun loaded;
  std::vector<LoadedRun> repeats;  // the other runs of its rung; with steps for the base only
  bool is_excerpt() const { return std::ssize(loaded.series.step) < loaded.summary.steps; }
};

// One run against a base, with everything that either table or JSON tells.
struct Comparison {
  const ComparedRun* run = nullptr;
  SpeedUp speedup;
  SpeedUp against_previous;
  LossParity loss;
  std::vector<Flag> flags;
  std::optional<TargetReached> target;  // where it reached the base's final loss, or the one asked for, if looked for
  std::optional<BatchSplit> batch;      // where the batch changed too
  double break_even_steps = missing;    // that its compiling takes to pay back
};

// `others`: among which one may tell a change from a bigger batch. Looks for no target.
std::vector<Comparison> compare_runs(const ComparedRun& base, std::span<const ComparedRun> runs, double noise_floor,
                                     const PlausibilityContext& judge, const std::vector<RunAndSummary>& others = {});
Json compare_json(const ComparedRun& base, const std::vector<Comparison>& comparisons);
std::string compare_table(const ComparedRun& base, const std::vector<Comparison>& comparisons);

Subcommand compare_command(CLI::App& app, CommonOptions& common);

}  // namespace stepladder
