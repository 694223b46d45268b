#pragma once

#include <memory>

#include "engine/trainer/step_graph.h"

namespace stepladder {

// As CudaParts::make_step_graph.
std::unique_ptr<StepGraph> make_cuda_step_graph();

}  // namespace stepladder
