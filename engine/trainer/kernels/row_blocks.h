// Distributes a fused kernel's rows over threads and hands its tensors to loops without torch.
#pragma once

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>

#include "engine/trainer/kernels/row_loops.h"
#include "engine/trainer/profile/kernel_range.h"

namespace stepladder {

// Rows in blocks whose number doesn't depend on the number of threads: sums over rows (the gradient of a bias) are made
// within a block, then over the blocks, so they have the same bits on any number of threads.
struct RowBlocks {
  static constexpr std::int64_t most = 32;

  // `kernel` is its name in the step profile (operator_watch.h), and `moved` the bytes that it has to read and to write
  // at least.
  RowBlocks(const char* kernel, std::int64_t rows, std::size_t moved)
      : name(kernel), bytes(moved), all(rows), each((rows + most - 1) / most) {}

  std::int64_t count() const { return all == 0 ? 0 : (all + each - 1) / each; }

  // work(block, first row, number of rows), on LibTorch's threads.
  template <class Work>
  void run(const Work& work) const {
    const KernelRange of(name, 0, static_cast<double>(bytes));
    at::parallel_for(0, count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        work(block, block * each, std::min(each, all - block * each));
      }
    });
  }

  const char* name;
  std::size_t bytes;
  std::int64_t all, each;
};

// work(T{}): Bf16 for bf16, else float. The trainer's tensors have no third type.
template <class Work>
void with_type_of(const at::Tensor& tensor, const Work& work) {
  if (tensor.scalar_type() == at::kBFloat16) {
    work(Bf16{});
  } else {
    TORCH_CHECK(tensor.scalar_type() == at::kFloat, "fused kernels are made for float32 and bf16");
    work(float{});
  }
}

// The elements of a contiguous tensor.
template <class T>
T* elements(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.element_size() == sizeof(T), "not the elements that a kernel reads");
  return static_cast<T*>(tensor.mutable_data_ptr());
}

}  // namespace stepladder
