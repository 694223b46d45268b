#include "engine/trainer/device/products.h"

namespace stepladder {

at::Tensor Products::forward(const at::Tensor& x, const LayerTensors& layer) {
  return layer.bias.defined() ? at::addmm(layer.bias, x, layer.weight.t()) : at::mm(x, layer.weight.t());
}

Products::Activated Products::forward_gelu(const at::Tensor& x, const LayerTensors& layer) {
  const at::Tensor pre = at::mm(x, layer.weight.t());
  return {pre, kernels_.gelu(pre, layer.float_bias)};
}

at::Tensor Products::input_gradient(const at::Tensor& d, const at::Tensor& weight) {
  return at::mm(d, weight);
}

Products::GeluGradients Products::gelu_gradient(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& pre,
                                                const LayerTensors& layer) {
  const at::Tensor d_pre = kernels_.gelu_backward(pre, layer.float_bias, at::mm(d, weight));
  return {d_pre, layer.float_bias.defined() ? kernels_.bias_gradient(d_pre) : at::Tensor()};
}

Products::WeightGradients Products::weight_gradient(const at::Tensor& d, const at::Tensor& x, bool wants_bias) {
  WeightGradients gradients;
  if (d.scalar_type() == at::kFloat) {
    gradients.weight = at::mm(d.t(), x);
  } else if (d.is_cuda()) {
    gradients.weight = at::mm(d.t(), x, at::kFloat);
  } else {  // LibTorch has this product for CUDA only
    gradients.weight = at::mm(d.t().to(at::kFloat), x.to(at::kFloat));
  }
  if (wants_bias) gradients.bias = kernels_.bias_gradient(d);
  return gradients;
}

}  // namespace stepladder
