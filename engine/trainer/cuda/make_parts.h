// What libstepladder_trainer_cuda makes, as CudaParts has it; each function is in a file of its own, since each
// includes another of CUDA's libraries.
#pragma once

#include "engine/trainer/cuda/cuda_parts.h"

namespace stepladder {

std::unique_ptr<StepGraph> make_cuda_step_graph();
std::unique_ptr<KernelLauncher> make_cuda_launcher(const std::string& cubin);
lt::Library open_lt_library();
c10::intrusive_ptr<c10d::Backend> join_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
                                            std::chrono::milliseconds patience, const std::string& interface);

}  // namespace stepladder
