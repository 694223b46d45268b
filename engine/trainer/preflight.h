// Checks before a run builds anything. Throws RecipeError, or std::runtime_error with a sentence for the user.
#pragma once

#include "engine/device.h"
#include "engine/recipe.h"

namespace stepladder {

// The recipe with every "auto" replaced by this machine's choice. Throws if the device, or a stage that the recipe has,
// cannot be used here.
Recipe resolve(Recipe recipe, const DeviceReport& report);

// Throws if weights, gradients and moments don't fit into the device's free memory. On a CPU, Linux would otherwise
// kill the process while weights are written, instead of refusing an allocation.
void require_memory(const Recipe& recipe);

}  // namespace stepladder
