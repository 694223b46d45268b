// Chooses how a run takes its steps. CUDA's parts are made by functions that tests replace by stand-ins.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/trainer/device/device_model.h"
#include "engine/trainer/step/autograd_step.h"
#include "engine/trainer/step_graph.h"

namespace stepladder {

// Makes the graph that captures the steps of a run with Compile::on or ::max; null if that device's steps are not
// captured.
using StepGraphMaker = std::function<std::unique_ptr<StepGraph>(at::Device)>;
std::unique_ptr<StepGraph> make_step_graph(at::Device device);  // CUDA's

// Where the steps of a run with Compile::max run by the kernels of engine/kernels; no launcher if they don't.
using StepDeviceMaker = std::function<DeviceModel::Device(const Recipe&)>;
DeviceModel::Device make_step_device(const Recipe& recipe);  // CUDA's

struct StepMakers {
  StepGraphMaker graph = make_step_graph;
  StepDeviceMaker device = make_step_device;
  bool falls_back = true;  // a step that fails its check makes way for a plainer one; else the run fails
};

// The recipe's "auto"s must be resolved. `machine` is the name by which a planned step keeps its choices.
std::unique_ptr<Step> make_step(const StepContext& context, const std::string& machine, const StepMakers& makers);

}  // namespace stepladder
