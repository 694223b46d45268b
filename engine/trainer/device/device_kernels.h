// The kernels of engine/kernels as functions of tensors. A recipe can replace each by LibTorch's own operation with the
// same meaning, so that a kernel's gain can be measured alone; tests compare the two.
//
// Rows are (N, C), contiguous. "Element" is the type of products: bf16 or float32; everything else is float32.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "engine/recipe.h"
#include "engine/trainer/device/kernel_launcher.h"

namespace stepladder {

// The parts that kernels of our own compute; false: LibTorch's operations.
struct DeviceParts {
  bool products = true;  // by cuBLASLt itself (lt_products.h)
  bool add_norm = true;
  bool gelu = true;
  bool classifier = true;
  bool embedding = true;
  bool adamw = true;
};
// All parts without those that the recipe replaces (engine/kernel_parts.h). Throws RecipeError for attention, which is
// LibTorch's on a GPU.
DeviceParts device_parts(const Recipe& recipe);

class DeviceKernels {
 public:
  // The widest row that a block can keep in its registers.
  static constexpr std::int64_t widest = 4096;

  // `launcher` must outlive this. `half`: elements are bf16.
  DeviceKernels(KernelLauncher& launcher, bool half, DeviceParts parts = {});

  at::ScalarType element() const { return half_ ? at::kBFloat16 : at::kFloat; }
  const DeviceParts& parts() const { return parts_; }
  KernelLauncher& launcher() const { return launcher_; }

  struct Normed {
    at::Tensor sum;           // stream + added + added_bias; the stream itself without `added`
    at::Tensor normed;        // LayerNorm(sum), elements
    at::Tensor mean, factor;  // (N), for the backward pass
  };
  // `added` and then `added_bias` may be undefined. weight, bias, added_bias: (C).
  Normed add_norm(const at::Tensor& stream, const at::Tensor& added, const at::Tensor& added_bias,
                  const at::Tensor& weight, const at::Tensor& bias) const;

  struct NormGradients {
    at::Tensor sum;    // the gradient of stream and added
    at::Tensor added;  // the same as elements
    at::Tensor weight, bias, added_bias;
  };
  // `later`: the gradient that arrives through the residual stream; may be undefined.
  NormGradients add_norm_backward(const at::Tensor& d_normed, const at::Tensor& later, const Normed& forward,
                                  const at::Tensor& weight, const at::Tensor& bias) const;

  // gelu(pre + bias), elements; `bias` may be undefined.
  at::Tensor gelu(const at::Tensor& pre, const at::Tensor& bias) const;
  // The gradient of `pre` from that of gelu's result; may overwrite `d`.
  at::Tensor gelu_backward(const at::Tensor& pre, const at::Tensor& bias, at::Tensor d) const;

  // The sum over rows, (C), float32.
  at::Tensor bias_gradient(const at::Tensor& d) const;

  // Each row's loss in nats, (N), over the first `vocab` logits. With scale > 0, `logits` become their gradient times
  // `scale`.
  at::Tensor classify(at::Tensor& logits, const at::Tensor& targets, std::int64_t vocab, double scale) const;

  // table[tokens] + positions, (N, C), for N tokens in sequences of `length`.
  at::Tensor embed(const at::Tensor& table, const at::Tensor& positions, const at::Tensor& tokens,
                   std::int64_t length) const;
  // The gradient of a table of `rows` rows.
  at::Tensor embed_backward(const at::Tensor& d, const at::Tensor& tokens, std::int64_t rows) const;

 private:
  at::Tensor column_sums(const at::Tensor& partial) const;  // (P, ...) -> (...)
  int threads_for(std::int64_t columns) const;

  KernelLauncher& launcher_;
  const bool half_;
  const DeviceParts parts_;
};

}  // namespace stepladder
