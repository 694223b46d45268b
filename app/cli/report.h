// Runs, ladders and comparisons as JSON (the contract of the command line) and as tables for a terminal.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/cli/table.h"
#include "app/runs/loaded_runs.h"
#include "app/runs/run_json.h"
#include "engine/device.h"
#include "engine/rungs.h"
#include "engine/stage.h"

namespace stepladder {

Json parity_json(const LossParity& loss);

// The rest of `show`: the parts of a step, checkpoints, text samples, and the machine's metrics.
Json life_cycle_json(RunStore& store, const RunAndSummary& run);
Json steps_json(const Series& series);
Json stage_json(const Stage& stage, const std::string& unavailable_because);
Json doctor_json(const DeviceReport& report, const std::filesystem::path& database);

Json ladder_json(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                 const std::filesystem::path& database, const RunContext& context);

std::string ladder_table(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                         const RunContext& context);
std::string runs_table(const std::vector<RunAndSummary>& runs, const RunContext& context);  // with trust_line
std::string run_text(const LoadedRun& run, const RunContext& context);
std::string doctor_text(const DeviceReport& report, const std::filesystem::path& database);

// The reason for a flag, and the command or option that remedies it.
std::string flag_text(const Flag& flag);

// A line for each reason to doubt the rung: `who`, the flag's id and its reason.
std::string doubt_notes(const RungJudgement& rung, const std::string& who);

// "10 of 13 runs impossible, 1 doubtful: stepladder check" and a line end; empty if all are trusted.
std::string trust_line(std::span<const Trust> runs);

// The flags of each run, judged by its own steps.
struct CheckedRun {
  Run run;
  Plausibility plausibility;
};

std::vector<CheckedRun> check_runs(const std::vector<RunAndSummary>& runs, const RunContext& context);
Json check_json(const std::vector<CheckedRun>& runs);
std::string check_text(const std::vector<CheckedRun>& runs);

}  // namespace stepladder
