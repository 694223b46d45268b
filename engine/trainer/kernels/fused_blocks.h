// The transformer's blocks by fused kernels, for a CPU: the `compile` stage there (engine/stages/compile.cpp).
#pragma once

#include "engine/trainer/model.h"

namespace stepladder {

// x: (B, T, C), float32, the embeddings. Returns the output of the blocks and the last LayerNorm, (B, T,
// C), in the type of the products. The same mathematics as Block::forward, rounded elsewhere.
at::Tensor fused_blocks(const std::vector<std::shared_ptr<Block>>& blocks, const LayerNorm& last, const at::Tensor& x);

}  // namespace stepladder
