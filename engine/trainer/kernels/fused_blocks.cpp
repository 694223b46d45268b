#include "engine/trainer/kernels/fused_blocks.h"

#include "engine/trainer/kernels/fused_add_norm.h"
#include "engine/trainer/kernels/fused_attention.h"
#include "engine/trainer/kernels/fused_mlp.h"
#include "engine/trainer/profile/model_range.h"

namespace stepladder {
namespace {

// Excludes the bias of its last product, as fused_mlp does: the add that follows includes it.
at::Tensor attention(const SelfAttention& layer, const at::Tensor& x) {
  const at::Tensor mixed = layer.way == Attention::explicit_scores
                               ? fused_attention(layer.c_attn->forward(x), layer.heads)
                               : layer.mix(x, {});
  return at::linear(mixed, layer.c_proj->weight);
}

}  // namespace

at::Tensor fused_blocks(const std::vector<std::shared_ptr<Block>>& blocks, const LayerNorm& last, const at::Tensor& x) {
  // Each norm follows an add, so a loop over norms includes each add: the previous block's.
  AddedAndNormed state{x, blocks.front()->ln_1->forward(x)};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = *blocks[i];
    const LayerNorm& next = i + 1 < blocks.size() ? *blocks[i + 1]->ln_1 : last;
    {
      const ModelRange range("attn", static_cast<int>(i));
      state = fused_add_norm(state.sum, attention(*block.attn, state.normed), block.attn->c_proj->bias,
                             block.ln_2->weight, block.ln_2->bias);
    }
    const ModelRange range("mlp", static_cast<int>(i));
    const Mlp& mlp = *block.mlp;
    const at::Tensor added = fused_mlp(state.normed, mlp.c_fc->weight, mlp.c_fc->bias, mlp.c_proj->weight);
    state = fused_add_norm(state.sum, added, mlp.c_proj->bias, next.weight, next.bias);
  }
  return state.normed;
}

}  // namespace stepladder
