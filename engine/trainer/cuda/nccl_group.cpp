#ifdef STEPLADDER_NCCL
#define USE_C10D_NCCL

#include <c10/util/env.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "engine/trainer/cuda/make_parts.h"

namespace stepladder {
namespace {

// NCCL's kernels wait forever for a rank that has exited. By default, LibTorch's watchdog thread then aborts the whole
// process, which may be the desktop. These settings make it abort only the communicators, at once; the training thread
// detects that (getError). The user's own settings are kept.
void let_the_process_live() {
  const auto set = [](const char* name, const char* value) { c10::utils::set_env(name, value, /*overwrite=*/false); };
  set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2");  // CleanUpOnly (ProcessGroupNCCL.hpp)
  set("TORCH_NCCL_ENABLE_MONITORING", "0");
  set("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0");
  set("TORCH_NCCL_DUMP_ON_TIMEOUT", "0");
  set("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0");  // else it aborts a minute later
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> join_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world_size,
                                            std::chrono::milliseconds patience, const std::string& interface) {
  let_the_process_live();
  // "=": exactly that one ("eth1" would match "eth10" too). NCCL reads it once per process.
  c10::utils::set_env("NCCL_SOCKET_IFNAME", ("=" + interface).c_str(), /*overwrite=*/false);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = patience;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world_size, std::move(options));
}

}  // namespace stepladder

#endif
