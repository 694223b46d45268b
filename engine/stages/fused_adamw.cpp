// Fused AdamW: one pass over all parameters instead of a dozen passes over each of 148 tensors.
//
// An AdamW update is about a dozen operations on each number: decay, two moving averages, a square root, a division. As
// separate operations each of them reads and writes the whole tensor and starts a kernel of its own, so a GPU spends
// the update waiting for memory and for launches. The fused kernel reads weight, gradient and both moments once, does
// everything in registers, and writes them once. The formula is the same; only rounding may differ.
#include "engine/stage.h"

namespace stepladder {

Stage stages::fused_adamw() {
  return {
      .id = "fused-adamw",
      .title = "Fused AdamW",
      .why =
          "The whole update in one pass over the parameters: less memory traffic, fewer kernel launches; the gain is "
          "largest with small batches.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe& recipe) { recipe.optimizer = Optimizer::fused_adamw; },
      .undo = [](Recipe& recipe) { recipe.optimizer = Optimizer::adamw; },
      .is_on = [](const Recipe& recipe) { return recipe.optimizer == Optimizer::fused_adamw; },
      .known = {.words = {"fused+optimizer", "fused+adam"},
                .law = {.terms = {{.kinds = {OperatorKind::optimizer},
                                   .rule = LawRule::moves_bytes,
                                   .amount = 28,
                                   .why = "one pass: 28 bytes a parameter"}}}}};
}

}  // namespace stepladder
