// The residual add and the LayerNorm that follows it, as one pass over the rows, forward and backward: a block's
// output, the bias of its last product, the add, the normalisation, and in bf16 the rounding for the next product.
#pragma once

#include <torch/torch.h>

namespace stepladder {

struct AddedAndNormed {
  at::Tensor sum;     // (..., C), float32: the residual stream
  at::Tensor normed;  // (..., C), in the type of the products (autocast's, else float32)
};

// stream: (..., C), float32; added: (..., C), float32 or bf16; added_bias, weight, bias: (C). sum = stream + added +
// added_bias; normed = LayerNorm(sum) with eps 1e-5.
AddedAndNormed fused_add_norm(const at::Tensor& stream, const at::Tensor& added, const at::Tensor& added_bias,
                              const at::Tensor& weight, const at::Tensor& bias);

}  // namespace stepladder
