// Estimates how long a step will take before any has been measured: a guess from arithmetic, for people who are about
// to wait.
#pragma once

#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/recipe.h"
#include "storage/analysis/hardware.h"
#include "storage/records.h"

namespace stepladder {

struct StepEstimate {
  double seconds = missing;  // of a step; missing if the vocabulary isn't known yet
  std::string basis;         // "4.2 GFLOP a step at 20 % of a peak of 0.38 TFLOP/s"
};

// FLOPs by PaLM's convention over a modest share of the device's peak, plus the time to update the weights in memory.
// A peak that the table lacks is guessed from the number of cores and their instruction set. Real steps take between a
// third and three times as long.
StepEstimate estimate_step(const Recipe& recipe, const DeviceReport& report, const HardwareTable& table);

// The sum over these runs; missing if one is.
double estimate_seconds(const std::vector<Recipe>& runs, const DeviceReport& report, const HardwareTable& table);

}  // namespace stepladder
