// The interface between the trainer, which links no CUDA, and libstepladder_trainer_cuda, which uses LibTorch's CUDA
// headers. Both are built together by one compiler; if there is a GPU, the trainer opens the library
// (engine/trainer/cuda_library.h) and never closes it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "engine/trainer/device/kernel_launcher.h"
#include "engine/trainer/device/lt_api.h"
#include "engine/trainer/step_graph.h"

namespace stepladder {

struct CudaParts {
  // A CUDA graph of the thread's present device. While it lives, the calling thread's current stream is one of its own,
  // since the default stream cannot be captured. The whole run uses it, so that no stream waits for
  // another. Must be destroyed on the same thread.
  std::unique_ptr<StepGraph> (*make_step_graph)();

  // Starts the kernels of that module (kernel_module.h) on the thread's present device. Throws std::runtime_error if
  // they cannot be loaded.
  std::unique_ptr<KernelLauncher> (*make_launcher)(const std::string& cubin);

  // cuBLASLt on the thread's present device. Throws std::runtime_error if it cannot be opened.
  lt::Library (*lt_library)();

  // Collectives on the thread's present device, a different one for each rank, over the network interface of that name
  // unless NCCL_SOCKET_IFNAME names another; null if the library was built without NCCL. After an operation that took
  // longer than `patience`, the backend's getError reports it and its results are invalid.
  c10::intrusive_ptr<c10d::Backend> (*join_nccl)(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
                                                 std::chrono::milliseconds patience, const std::string& interface);
};

// Exported by the library under this name.
inline constexpr const char* cuda_parts_symbol = "stepladder_cuda_parts";
using CudaPartsEntry = const CudaParts* (*)();

}  // namespace stepladder
