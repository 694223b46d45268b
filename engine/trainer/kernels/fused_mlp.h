// A block's MLP with bias and GELU as one pass over the first product's output. Plain, that is three (bias, GELU, and
// GELU's backward pass with a tanh for each element, the costliest operation of a small model on a CPU after the
// products).
#pragma once

#include <torch/torch.h>

namespace stepladder {

// x: (..., C), fc_weight: (D, C), fc_bias: (D), proj_weight: (C, D). Returns gelu(x fc_weight^T + fc_bias)
// proj_weight^T, (..., C), in the type of the products (autocast's, else that of x); fused_add_norm.h adds the last
// bias to the residual stream.
at::Tensor fused_mlp(const at::Tensor& x, const at::Tensor& fc_weight, const at::Tensor& fc_bias,
                     const at::Tensor& proj_weight);

}  // namespace stepladder
