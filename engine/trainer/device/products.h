// The matrix products of GPT-2's step, forward and backward, with what surrounds them: biases, GELU, bias gradients.
// Elements are bf16 or float32 (device_kernels.h); gradients of weights and biases are float32 straight from the
// product.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "engine/trainer/device/device_kernels.h"

namespace stepladder {

// A linear layer's tensors for the products.
struct LayerTensors {
  at::Tensor weight;      // (M, K), elements
  at::Tensor bias;        // (M), elements; undefined: the layer has none, or something else adds it
  at::Tensor float_bias;  // the same in float32
};

// Computes them by LibTorch's products and the kernels.
class Products {
 public:
  explicit Products(const DeviceKernels& kernels) : kernels_(kernels) {}
  virtual ~Products() = default;
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  // x W^T + bias. x: (N, K) -> (N, M).
  virtual at::Tensor forward(const at::Tensor& x, const LayerTensors& layer);

  // `pre` is for `gelu_gradient` alone.
  struct Activated {
    at::Tensor pre, after;  // (N, M)
  };
  virtual Activated forward_gelu(const at::Tensor& x, const LayerTensors& layer);

  // d W. d: (N, M) -> (N, K).
  virtual at::Tensor input_gradient(const at::Tensor& d, const at::Tensor& weight);

  // d W, times GELU's slope at `pre`, and the sum of that over the rows. `layer` is the one before GELU.
  struct GeluGradients {
    at::Tensor pre;   // (N, K)
    at::Tensor bias;  // (K), float32
  };
  virtual GeluGradients gelu_gradient(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& pre,
                                      const LayerTensors& layer);

  // d^T x, and with `wants_bias` the sum of d over its rows. d: (N, M), x: (N, K).
  struct WeightGradients {
    at::Tensor weight;  // (M, K), float32
    at::Tensor bias;    // (M), float32
  };
  virtual WeightGradients weight_gradient(const at::Tensor& d, const at::Tensor& x, bool wants_bias);

  // The algorithms that it chose by timing, a line for each shape, in the order of their first calls.
  virtual std::vector<std::string> choices() const { return {}; }

 protected:
  const DeviceKernels& kernels_;
};

}  // namespace stepladder
