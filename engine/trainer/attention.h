// Causal self-attention over heads that are already split: spelled out, or as one fused kernel.
#pragma once

#include <torch/torch.h>

#include "engine/recipe.h"

namespace stepladder {

// q, k, v: (B, heads, T, d). `future` is (T, T), true where a key comes after its query; only explicit attention
// reads it. Returns (B, heads, T, d). Vaswani et al. 2017, equation 1.
at::Tensor attend(Attention way, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& future);

}  // namespace stepladder
