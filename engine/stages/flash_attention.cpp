// Flash attention never writes the (T, T) matrix of scores to memory.
//
// Spelled out, attention stores B x heads x T x T scores, and their softmax, for every layer: at T = 1024 that is more
// traffic than all the rest of the block. The fused kernel (Dao et al. 2022) walks over tiles of keys and values that
// fit into fast memory and keeps a running maximum and sum, from which it computes an exact softmax; the backward pass
// computes the scores again rather than reading them. The mask's empty upper half is skipped, which saves half of the
// arithmetic. The result differs from the explicit one by rounding only.
#include "engine/stage.h"

namespace stepladder {

Stage stages::flash_attention() {
  return {
      .id = "flash-attention",
      .title = "Flash attention",
      .why =
          "One fused kernel for attention that never stores the T x T scores; the longer the sequence, the more it "
          "saves.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe& recipe) { recipe.attention = Attention::scaled_dot_product; },
      .undo = [](Recipe& recipe) { recipe.attention = Attention::explicit_scores; },
      .is_on = [](const Recipe& recipe) { return recipe.attention == Attention::scaled_dot_product; },
      .known = {.words = {"flash", "scaled dot product", "sdpa"},
                .law = {.terms = {{.kinds = {OperatorKind::softmax, OperatorKind::elementwise, OperatorKind::copies},
                                   .part = ModelPart::attention,
                                   .rule = LawRule::vanishes,
                                   .at_most = true,
                                   .why = "scores that are never written"},
                                  {.kinds = {OperatorKind::products},
                                   .part = ModelPart::attention,
                                   .operators = {"aten::bmm", "aten::baddbmm"},
                                   .rule = LawRule::vanishes,
                                   .at_most = true,
                                   .why = "products of the scores, if the fused kernel costs nothing"}}}}};
}

}  // namespace stepladder
