// One run, from its recipe to its end, on the calling thread.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "engine/trainer/step_graph.h"
#include "engine/training_job.h"
#include "storage/records.h"

namespace stepladder {

// Makes the graph that captures the steps of a run with Compile::on; null if that device's steps are not captured.
using StepGraphMaker = std::function<std::unique_ptr<StepGraph>(at::Device)>;
std::unique_ptr<StepGraph> make_step_graph(at::Device device);  // CUDA's

// As TrainerLibrary::train (engine/trainer_library.h).
void train(const TrainingJob& job, RunControl& control, const std::function<void(const RunEvent&)>& emit,
           const StepGraphMaker& make_graph = make_step_graph);

}  // namespace stepladder
