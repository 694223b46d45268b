// Opens LibTorch's CUDA half if there is a driver; it registers itself with the linked half. It isn't linked itself
// because it takes gigabytes and is useless without a driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device.h"

namespace stepladder {

struct CudaParts;

struct CudaLibrary {
  std::vector<Gpu> gpus;             // that LibTorch can use
  std::string note;                  // why there aren't any
  int runtime_major = 0;             // of the CUDA that LibTorch uses: 13; 0 if it isn't loaded
  const CudaParts* parts = nullptr;  // libstepladder_trainer_cuda's (engine/trainer/cuda/cuda_parts.h)
  std::string parts_note;            // why they cannot be used
};

// The reason why a LibTorch that was built with this CUDA (13000 for 13.0) has no kernels for the GPU; empty if it has
// them.
std::string too_old(const Gpu& gpu, std::int64_t cuda_version);

// Opens it at the first call, which must happen before any tensor is made: LibTorch looks for CUDA only once.
const CudaLibrary& cuda_library();

}  // namespace stepladder
