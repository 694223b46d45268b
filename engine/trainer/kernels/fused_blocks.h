// The transformer's blocks by fused kernels, and their parts, for a CPU: the `compile` stage there
// (engine/stages/compile.cpp).
#pragma once

#include "engine/trainer/model.h"

namespace stepladder {

// Explicit attention with everything between its products in one pass: scale, mask and softmax over the scores,
// and heads taken out of and put back into the rows of (B, T, C) where they are copied anyway.
// qkv: (B, T, 3 C), queries, keys and values of all heads. Returns softmax(q k^T / sqrt(d)) v without the keys after
// the query, (B, T, C), in the type of the products (autocast's, else that of qkv). Vaswani et al. 2017, equation 1.
at::Tensor fused_attention(const at::Tensor& qkv, std::int64_t heads);

// A block's MLP with bias and GELU as one pass over the first product's output. Plain, that is three (bias, GELU, and
// GELU's backward pass with a tanh for each element, the costliest operation of a small model on a CPU after the
// products).
// x: (..., C), fc_weight: (D, C), fc_bias: (D), proj_weight: (C, D). Returns gelu(x fc_weight^T + fc_bias)
// proj_weight^T, (..., C), in the type of the products (autocast's, else that of x); fused_add_norm adds the last
// bias to the residual stream.
at::Tensor fused_mlp(const at::Tensor& x, const at::Tensor& fc_weight, const at::Tensor& fc_bias,
                     const at::Tensor& proj_weight);

struct AddedAndNormed {
  at::Tensor sum;     // (..., C), float32: the residual stream
  at::Tensor normed;  // (..., C), in the type of the products (autocast's, else float32)
};

// The residual add and the LayerNorm that follows it, as one pass over the rows, forward and backward: a block's
// output, the bias of its last product, the add, the normalisation, and in bf16 the rounding for the next product.
// stream: (..., C), float32; added: (..., C), float32 or bf16; added_bias, weight, bias: (C). sum = stream + added +
// added_bias; normed = LayerNorm(sum) with eps 1e-5.
AddedAndNormed fused_add_norm(const at::Tensor& stream, const at::Tensor& added, const at::Tensor& added_bias,
                              const at::Tensor& weight, const at::Tensor& bias);

// x: (B, T, C), float32, the embeddings. Returns the output of the blocks and the last LayerNorm, (B, T,
// C), in the type of the products. The same mathematics as Block::forward, rounded elsewhere.
at::Tensor fused_blocks(const std::vector<std::shared_ptr<Block>>& blocks, const LayerNorm& last, const at::Tensor& x);

}  // namespace stepladder
