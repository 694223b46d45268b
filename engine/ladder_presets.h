// Ladders that others have measured, ready to run here: the same model, sizes and order of stages, with their
// throughput for comparison.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/rungs.h"

namespace stepladder {

struct LadderPreset {
  std::string name;  // as on the command line
  std::string log;   // the file that it was read from, without its ending
  std::string note;  // whose ladder it was, and on which hardware
  Recipe base;
  std::vector<PlannedRung> rungs;  // the baseline first, each with the throughput measured there
};

const std::vector<LadderPreset>& ladder_presets();

// Throws RecipeError for an unknown name, with the nearest one that exists.
const LadderPreset& ladder_preset(std::string_view name);

// Halves batches, and once all are 1 the sequence, until every rung fits into `free_bytes` (0: unknown, no change).
// Batches that change with a rung keep their proportion.
void fit_to_memory(Recipe& base, std::vector<PlannedRung>& rungs, const DeviceReport& report, std::int64_t free_bytes);

}  // namespace stepladder
