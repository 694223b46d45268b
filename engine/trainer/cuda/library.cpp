// The only symbol that libstepladder_trainer_cuda exports.
#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/cuda/cuda_step_graph.h"
#include "engine/trainer/cuda/nccl_group.h"

extern "C" __attribute__((visibility("default"))) const stepladder::CudaParts* stepladder_cuda_parts() {
  static const stepladder::CudaParts parts = {
      .make_step_graph = stepladder::make_cuda_step_graph,
#ifdef STEPLADDER_NCCL
      .join_nccl = stepladder::join_nccl,
#else
      .join_nccl = nullptr,
#endif
  };
  return &parts;
}
