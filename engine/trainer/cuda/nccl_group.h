#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace stepladder {

// As CudaParts::join_nccl.
c10::intrusive_ptr<c10d::Backend> join_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
                                            std::chrono::milliseconds patience, const std::string& interface);

}  // namespace stepladder
