// Explicit attention with everything between its products in one pass: scale, mask and softmax over the scores,
// and heads taken out of and put back into the rows of (B, T, C) where they are copied anyway.
#pragma once

#include <torch/torch.h>

namespace stepladder {

// qkv: (B, T, 3 C), queries, keys and values of all heads. Returns softmax(q k^T / sqrt(d)) v without the keys after
// the query, (B, T, C), in the type of the products (autocast's, else that of qkv). Vaswani et al. 2017, equation 1.
at::Tensor fused_attention(const at::Tensor& qkv, std::int64_t heads);

}  // namespace stepladder
