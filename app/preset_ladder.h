// Turns ladders that were measured before, here or elsewhere, into requests for this machine.
#pragma once

#include <vector>

#include "app/session.h"
#include "engine/ladder_presets.h"

namespace stepladder {

// `base` is the preset's recipe with the user's changes. Reduces batches and sequences until they fit into memory.
LadderRequest preset_ladder(const LadderPreset& plan, const Recipe& base, const DeviceReport& report);

// The same rungs again: with their own recipes if they were trained here, with the log's preset if they were imported.
// On a CPU sequences are at most 64 tokens long and runs at most 20 steps, since seconds of a GPU take it hours. Throws
// RecipeError if the log has no preset.
LadderRequest measure_here(const Ladder& ladder, const std::vector<Run>& runs, const DeviceReport& report);

}  // namespace stepladder
