// Runs, ladders and comparisons as JSON (the contract of the command line) and as tables for a terminal.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/table.h"
#include "engine/device.h"
#include "engine/stage.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/rungs.h"
#include "storage/database/run_store.h"

namespace stepladder {

using Json = nlohmann::ordered_json;

// `missing` is null; NaN and infinities, which JSON has no numbers for, are the words "NaN", "inf" and "-inf".
Json number(double value);

Json interval_json(const Interval& interval);  // [low, high]
Json parity_json(const LossParity& loss);

// What a run is judged by, beyond itself: the table of hardware, and how often its rung was run.
struct PlausibilityContext {
  HardwareTable hardware;
  RepeatCounts repeats;
};
PlausibilityContext load_judge(RunStore* store);  // null: no run is known yet

Json run_json(const Run& run, const Summary& summary, const PlausibilityContext& judge = {});
// What `show` says beside that: what a step was spent on, checkpoints, text samples, and what the machine did.
Json life_cycle_json(RunStore& store, const RunAndSummary& run);
Json steps_json(const Series& series);
Json stage_json(const Stage& stage, const std::string& unavailable_because);
Json doctor_json(const DeviceReport& report, const std::filesystem::path& database);

// A run with everything computed from it, read once.
struct LoadedRun {
  Run run;
  Summary summary;
  Series series;
  StepProfile profile;  // of no steps where there is none
};
std::vector<LoadedRun> load_runs(RunStore& store, const std::vector<Run>& runs);
std::vector<MeasuredRun> measured(const std::vector<LoadedRun>& runs);

Json ladder_json(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                 const std::filesystem::path& database, const PlausibilityContext& judge);

std::string ladder_table(const std::vector<LoadedRun>& runs, const LadderPlan& plan);
std::string runs_table(const std::vector<RunAndSummary>& runs);
std::string run_text(const LoadedRun& run, const PlausibilityContext& judge);  // its series may be the last steps only
std::string doctor_text(const DeviceReport& report, const std::filesystem::path& database);

std::string ci95_text(const Interval& interval);  // "1.38 - 1.46"; "-" where not known

// "same", or "worse by 0.0312"; "reference" for the rung that the others are compared with.
std::string loss_text(const LossParity& loss, bool reference);

}  // namespace stepladder
