// GPT-3's optimiser settings: betas 0.9 and 0.95, epsilon 1e-8, gradients clipped to a norm of 1.
//
// AdamW divides each gradient's running mean by the root of its running mean square. With beta2 = 0.999 that square
// averages over a thousand steps, too many for a loss that falls this fast; 0.95 averages over twenty (Brown et al.
// 2020, appendix B). Clipping treats all gradients as one vector: where its length is above 1, all are scaled down by
// the same factor, so the direction stays and one bad batch cannot throw the weights far. The norm of every step is
// worth recording: it climbs before a loss spikes.
#include "engine/stage.h"

namespace stepladder {

Stage stages::gpt3_adamw() {
  return {.id = "gpt3-adamw",
          .title = "GPT-3's AdamW",
          .why = "Betas 0.9 and 0.95, epsilon 1e-8, gradients clipped to norm 1: steadier steps, not faster ones.",
          .kind = StageKind::changes_the_maths,
          .apply =
              [](Recipe& recipe) {
                recipe.beta1 = 0.9;
                recipe.beta2 = 0.95;
                recipe.eps = 1e-8;
                recipe.clip = 1.0;
              },
          .undo =
              [](Recipe& recipe) {
                if (recipe.beta2 == 0.95) recipe.beta2 = 0.999;
                if (recipe.clip == 1.0) recipe.clip = 0;
              },
          .is_on = [](const Recipe& recipe) { return recipe.beta2 == 0.95 && recipe.clip == 1.0; },
          .known = {.words = {"hyper param+adam", "clipping"},
                    .law = {.terms = {{.kinds = {OperatorKind::optimizer},
                                       .rule = LawRule::adds_bytes,
                                       .amount = 12,
                                       .why = "the norm reads all gradients, clipping reads and writes them"}}}}};
}

}  // namespace stepladder
