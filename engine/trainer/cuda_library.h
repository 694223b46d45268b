// Opens LibTorch's CUDA half if there is a driver; it registers itself with the linked half. It isn't linked itself
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

// Opens it at the first call, which must happen before any tensor is made: LibTorch looks for CUDA only once.
const CudaLibrary& cuda_library();

}  // namespace stepladder
