// Turns ladders that were measured before, here or elsewhere, into requests for this machine.
#pragma once

#include <functional>
#include <vector>

#include "app/session/session.h"
#include "engine/ladder_presets.h"

namespace stepladder {

// A preset with the user's changes to its recipe. On a CPU its sequences have at most 64 tokens and its runs 20 steps
// unless the user has changed them, since seconds of a GPU take it hours. Reduces batches and sequences until they fit
// into memory.
using ChangeRecipe = std::function<Recipe(const Recipe&)>;
LadderRequest preset_ladder(const LadderPreset& plan, const DeviceReport& report, const ChangeRecipe& changed = {});

// The same rungs again: with their own recipes if they were trained here, with the log's preset if they were imported.
// Throws RecipeError if the log has no preset.
LadderRequest measure_here(const Ladder& ladder, const std::vector<Run>& runs, const DeviceReport& report);

}  // namespace stepladder
