// Ladders that were climbed before, here or elsewhere, as requests for this machine.
#pragma once

#include <vector>

#include "app/session.h"
#include "engine/ladder_presets.h"

namespace stepladder {

// `base` is the plan's own with what was given by hand; batches and sequences are made to fit this machine's memory.
LadderRequest preset_ladder(const LadderPreset& plan, const Recipe& base, const DeviceReport& report);

// The same rungs once more: by their own recipes where they were trained here, by the ready plan of the log where they
// were imported from one. On a CPU sequences are at most 64 long and runs at most 20 steps, since what takes a GPU
// seconds takes it hours. Throws RecipeError where no plan is known.
LadderRequest measure_here(const Ladder& ladder, const std::vector<Run>& runs, const DeviceReport& report);

}  // namespace stepladder
