// One run, from its recipe to its end, on the calling thread.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "engine/step_tracing.h"
#include "engine/trainer/device/device_step.h"
#include "engine/trainer/step_graph.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// Makes the graph that captures the steps of a run with Compile::on or ::max; null if that device's steps are not
// captured.
using StepGraphMaker = std::function<std::unique_ptr<StepGraph>(at::Device)>;
std::unique_ptr<StepGraph> make_step_graph(at::Device device);  // CUDA's

// Where the steps of a run with Compile::max run by the kernels of engine/kernels; no launcher if they don't.
using StepDeviceMaker = std::function<DeviceStep::Device(const Recipe&)>;
DeviceStep::Device make_step_device(const Recipe& recipe);  // CUDA's

// As TrainerLibrary::train (engine/trainer_library.h).
void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit,
           const StepGraphMaker& make_graph = make_step_graph, const StepDeviceMaker& make_device = make_step_device);

// As TrainerLibrary::trace_steps.
void trace_training(const StepTracing& asked, const std::function<bool()>& stop_requested,
                    const StepGraphMaker& make_graph = make_step_graph,
                    const StepDeviceMaker& make_device = make_step_device);

}  // namespace stepladder
