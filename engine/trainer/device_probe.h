// Detects the devices of this machine and their features, including those that only LibTorch can report.
#pragma once

#include "engine/device.h"
#include "engine/trainer/trainer.h"

namespace stepladder {

// Detected at the first call, which loads CUDA if there is a driver; any thread.
const DeviceReport& device_report();

// Trains a tiny model so on that device and returns why it failed; empty if it worked. On a GPU that captures a step,
// and for Compile::max compiles its kernels first; either takes a second.
std::string try_to_compile(at::Device device, Compile compile, Autocast autocast = Autocast::off,
                           const StepGraphMaker& make_graph = make_step_graph);

// device_report() and, with a GPU, whether `compile` and `compile-max` work on it: a stage that would fail on this
// machine isn't offered, since every later rung would fail too.
DeviceReport probe();

}  // namespace stepladder
