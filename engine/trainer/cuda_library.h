// Opens LibTorch's CUDA half where there is a driver; it registers itself with the half that is linked. It isn't linked
// because it takes gigabytes and is useless without a driver.
#pragma once

#include <string>
#include <vector>

#include "engine/device.h"

namespace stepladder {

struct CudaParts;

struct CudaLibrary {
  std::vector<Gpu> gpus;             // that LibTorch can use
  std::string note;                  // why there aren't any
  const CudaParts* parts = nullptr;  // libstepladder_trainer_cuda's (engine/trainer/cuda/cuda_parts.h)
  std::string parts_note;            // why they cannot be used
};

// Opens it at the first call, which must come before any tensor is made: LibTorch looks for CUDA once.
const CudaLibrary& cuda_library();

}  // namespace stepladder
