// One run, from its recipe to its end, on the calling thread.
#pragma once

#include <functional>

#include "engine/device.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// What this machine has, LibTorch's half included. Loads CUDA at the first call where there is a driver.
const DeviceReport& device_report();

// As TrainerLibrary::train (engine/trainer_library.h).
void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit);

}  // namespace stepladder
