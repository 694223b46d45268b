// Starts a kernel of engine/kernels. CUDA's launcher is in engine/trainer/cuda; tests run the same kernels on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepladder {

struct LaunchShape {
  std::int64_t blocks = 1;        // in the first dimension
  std::int64_t slices = 1;        // blocks in the second dimension
  int threads = 1;                // of a block; a multiple of 32
  std::int64_t shared_bytes = 0;  // of a block, beside what the kernel declares itself
};

class KernelLauncher {
 public:
  struct Argument {
    const void* value;
    std::size_t bytes;
  };

  virtual ~KernelLauncher() = default;

  // Queues the kernel on the calling thread's current stream. The arguments must have the types of the kernel's own.
  // Throws std::runtime_error if it cannot be started.
  virtual void launch(const char* kernel, const LaunchShape& shape, std::span<const Argument> arguments) = 0;

  virtual int processors() const = 0;             // that run blocks at the same time
  virtual std::int64_t shared_bytes() const = 0;  // that a block may have

  template <class... Values>
  void start(const char* kernel, const LaunchShape& shape, const Values&... values) {
    const Argument arguments[] = {{&values, sizeof values}...};
    launch(kernel, shape, arguments);
  }
};

}  // namespace stepladder
