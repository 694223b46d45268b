// The kernels of engine/kernels on the CPU, behind the interface that CUDA's launcher has.
#pragma once

#include "tests/trainer/device/cuda_shim.h"

// The shim first.
#include "engine/kernels/adamw_slots.h"

namespace kernels_fp32 {
#include "engine/kernels/adamw.cu"
#include "engine/kernels/add_norm.cu"
#include "engine/kernels/classifier.cu"
#include "engine/kernels/embedding.cu"
#include "engine/kernels/gelu.cu"
#include "engine/kernels/sums.cu"
}  // namespace kernels_fp32

#undef STEPLADDER_KERNELS_COMMON
#undef HALF
#define HALF 1
namespace kernels_bf16 {
#include "engine/kernels/adamw.cu"
#include "engine/kernels/add_norm.cu"
#include "engine/kernels/classifier.cu"
#include "engine/kernels/embedding.cu"
#include "engine/kernels/gelu.cu"
#include "engine/kernels/sums.cu"
}  // namespace kernels_bf16

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#include <ATen/Parallel.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/trainer/device/kernel_launcher.h"

namespace stepladder {

// LibTorch's products are tiny beside the shim, and its threads would wait for each other on a busy machine.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

class KernelsOnCpu : public KernelLauncher {
 public:
  explicit KernelsOnCpu(bool half, std::int64_t shared_bytes = 227 << 10) : shared_bytes_(shared_bytes) {
#define ADD(name) half ? add(#name, &kernels_bf16::name) : add(#name, &kernels_fp32::name)
    ADD(add_norm);
    ADD(add_norm_backward);
    ADD(adamw);
    ADD(gradient_squares);
    ADD(clip_factor);
    ADD(classifier);
    ADD(embedding);
    ADD(embedding_backward);
    ADD(gelu);
    ADD(gelu_backward);
    ADD(bias_gradient);
    ADD(column_sums);
#undef ADD
  }

  void launch(const char* kernel, const LaunchShape& shape, std::span<const Argument> arguments) override {
    ++launches[kernel];
    if (shape.threads % 32 != 0 || shape.threads < 32 || shape.shared_bytes > shared_bytes_)
      throw std::invalid_argument("no card can launch this");
    const cuda_shim::Dim grid{static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.slices), 1};
    cuda_shim::Launch launch(grid, static_cast<unsigned>(shape.threads), static_cast<std::size_t>(shape.shared_bytes),
                             descending);
    launch.run(kernels_.at(kernel)(arguments));
  }
  int processors() const override {
    return 2;
  }
  std::int64_t shared_bytes() const override {
    return shared_bytes_;
  }

  bool descending = false;              // the order in which a block's threads run
  std::map<std::string, int> launches;  // of each kernel

 private:
  using Bound = std::function<void()>;

  template <class... Parameters>
  void add(const char* name, void (*kernel)(Parameters...)) {
    kernels_[name] = [kernel](std::span<const Argument> arguments) { return bind(kernel, arguments); };
  }
  template <class... Parameters>
  static Bound bind(void (*kernel)(Parameters...), std::span<const Argument> arguments) {
    return bind(kernel, arguments, std::index_sequence_for<Parameters...>());
  }
  template <class... Parameters, std::size_t... i>
  static Bound bind(void (*kernel)(Parameters...), std::span<const Argument> arguments, std::index_sequence<i...>) {
    if (arguments.size() != sizeof...(Parameters)) throw std::invalid_argument("another number of arguments");
    if (((arguments[i].bytes != sizeof(Parameters)) || ...)) throw std::invalid_argument("an argument of another size");
    std::tuple<Parameters...> values;
    (std::memcpy(&std::get<i>(values), arguments[i].value, sizeof(Parameters)), ...);
    return [kernel, values] { std::apply(kernel, values); };
  }

  const OneThread one_thread_;
  const std::int64_t shared_bytes_;
  std::map<std::string, std::function<Bound(std::span<const Argument>)>> kernels_;
};

}  // namespace stepladder
