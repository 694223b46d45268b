// One run, from its recipe to its end, on the calling thread.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

#include "engine/device.h"
#include "engine/trainer/step_graph.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// What this machine has, LibTorch's half included. Loads CUDA at the first call where there is a driver.
const DeviceReport& device_report();

// What captures the steps of a run with Compile::on on that device; null where they are not captured.
using StepGraphMaker = std::function<std::unique_ptr<StepGraph>(at::Device)>;
std::unique_ptr<StepGraph> make_step_graph(at::Device device);  // CUDA's

// As TrainerLibrary::train (engine/trainer_library.h).
void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit,
           const StepGraphMaker& make_graph = make_step_graph);

// Why a tiny model's step cannot be captured and replayed on that device; empty where it can. Takes a second on a GPU.
std::string try_to_capture(at::Device device, const StepGraphMaker& make_graph = make_step_graph);

// device_report(), and where there is a GPU whether steps can be captured on it: a stage that would fail on this
// machine is not offered, since every rung above it would fail too.
DeviceReport probe();

}  // namespace stepladder
