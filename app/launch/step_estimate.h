// Estimates how long a step will take before it has been measured, for people who are about to wait: as in this
// project's own runs of the recipe on this machine, else a guess from arithmetic.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/recipe.h"
#include "engine/rungs.h"
#include "storage/analysis/hardware.h"
#include "storage/analysis/judgement.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

struct StepEstimate {
  double seconds = missing;  // of a step; missing if the vocabulary isn't known yet
  std::string basis;         // "4.2 GFLOP a step at 20 % of a peak of 0.38 TFLOP/s"; "3 runs of this recipe here"
  std::int64_t steps = 0;    // of the run
  bool is_measured = false;
  bool is_disturbed = false;  // measured beside other programs: it holds their time

  // Beside programs that make an undisturbed step take `slowdown` times as long.
  double seconds_beside(double slowdown) const { return is_disturbed ? seconds : seconds * slowdown; }
};
std::string basis_text(const StepEstimate& step);  // ", by 3 runs of this recipe here"; ": a rough estimate from ..."

// Those that may be measured_step()'s. Refers to `runs`.
std::vector<MeasuredRun> finished_runs(std::span<const RunAndSummary> runs);

// The median of the newest runs, up to five, that were launched here with the same hardware, tokens per step and recipe
// but seed, schedule, validation and checkpoints; runs that others disturbed count only if there are no others.
// `seconds` is missing without such a run. The runs' series aren't read.
StepEstimate measured_step(const Run& like, std::span<const MeasuredRun> runs);

// For each rung of a ladder: that it was measured to be slower than the one that it stands on, in tokens/s and beyond
// the noise, by the runs of measured_step that nobody disturbed, at least two of each. Empty: it wasn't.
std::vector<std::string> slower_here(std::span<const Rung> rungs, const DeviceReport& report,
                                     std::span<const MeasuredRun> runs);

// Why Launch doesn't propose bf16 on this device: `runs` with it were slower here than those without; or, if there are
// none, a CPU without such instructions, or one whose products were measured to be no faster
// (`stepladder doctor --probe`), or weren't measured. Empty: it does.
std::string why_not_bf16(const std::string& device, const DeviceReport& report, const HardwareTable& table,
                         std::span<const MeasuredRun> runs);

// measured_step, else FLOPs by PaLM's convention over a modest share of the device's peak, plus the time to update the
// weights in memory. A peak that the table lacks is guessed from the number of cores and their instruction set. Real
// steps take between a third and three times as long as that guess, which is therefore scaled by how far it is off for
// undisturbed runs of this model and precision here, else for others.
StepEstimate estimate_step(const Recipe& recipe, const DeviceReport& report, const HardwareTable& table,
                           std::span<const MeasuredRun> runs);

// Of all steps of these runs; missing if one's are.
double seconds_of(std::span<const StepEstimate> runs, double slowdown = 1);
double estimate_seconds(const std::vector<Recipe>& recipes, const DeviceReport& report, const HardwareTable& table,
                        std::span<const MeasuredRun> runs);

}  // namespace stepladder
