// The only symbol that libstepladder_trainer_cuda exports.
#include "engine/trainer/cuda/make_parts.h"

extern "C" __attribute__((visibility("default"))) const stepladder::CudaParts* stepladder_cuda_parts() {
  static const stepladder::CudaParts parts = {
      .make_step_graph = stepladder::make_cuda_step_graph,
      .make_launcher = stepladder::make_cuda_launcher,
      .lt_library = stepladder::open_lt_library,
#ifdef STEPLADDER_NCCL
      .join_nccl = stepladder::join_nccl,
#else
      .join_nccl = nullptr,
#endif
  };
  return &parts;
}
