// One run, from its recipe to its end, on the calling thread.
#pragma once

#include <functional>
#include <stop_token>

#include "engine/device.h"
#include "engine/recipe.h"
#include "storage/records.h"

namespace stepladder {

// What this machine has, LibTorch's half included. Loads CUDA at the first call where there is a driver.
const DeviceReport& device_report();

// As TrainerLibrary::train (engine/trainer_library.h).
void train(RunId run, const Recipe& recipe, std::stop_token stop, const std::function<void(const RunEvent&)>& emit);

}  // namespace stepladder
