// What this machine can train on, including what only LibTorch knows.
#pragma once

#include "engine/device.h"
#include "engine/trainer/trainer.h"

namespace stepladder {

// Detected at the first call, which loads CUDA where there is a driver; any thread.
const DeviceReport& device_report();

// Why a tiny model's step cannot be captured and replayed on that device; empty where it can. Takes a second on a GPU.
std::string try_to_capture(at::Device device, const StepGraphMaker& make_graph = make_step_graph);

// device_report(), and where there is a GPU, whether it can capture steps: a stage that would fail on this machine
// isn't offered, since every rung above it would fail too.
DeviceReport probe();

}  // namespace stepladder
