// Detects the devices of this machine and their features, including those that only LibTorch can report.
#pragma once

#include "engine/device.h"
#include "engine/trainer/trainer.h"

namespace stepladder {

// Detected at the first call, which loads CUDA if there is a driver; any thread.
const DeviceReport& device_report();

// Why a tiny model's step cannot be captured and replayed on that device; empty if it can. Takes a second on a GPU.
std::string try_to_capture(at::Device device, const StepGraphMaker& make_graph = make_step_graph);

// device_report() and, with a GPU, whether it can capture steps: a stage that would fail on this machine isn't offered,
// since every later rung would fail too.
DeviceReport probe();

}  // namespace stepladder
