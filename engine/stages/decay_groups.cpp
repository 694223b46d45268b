// Weight decay for matrices only.
//
// Decay pulls a weight towards zero unless the gradient pushes back. For a matrix that is a bet that many small weights
// do better than a few large ones. For a bias or a LayerNorm's scale there is no such reason: there are few of them,
// and zero isn't a neutral value for a scale. So tensors with two dimensions or more decay with 0.1
// (embeddings too) and the others not at all (Brown et al. 2020, appendix B). The optimiser gets two groups of
// parameters; a step costs the same.
#include "engine/stage.h"

namespace stepladder {

Stage stages::decay_groups() {
  return {.id = "decay-groups",
          .title = "Decay groups",
          .why = "Weight decay 0.1 on matrices and embeddings only, none on biases and LayerNorms.",
          .kind = StageKind::changes_the_maths,
          .apply =
              [](Recipe& recipe) {
                recipe.decay = Decay::matrices;
                recipe.weight_decay = 0.1;
              },
          .undo =
              [](Recipe& recipe) {
                if (recipe.decay == Decay::matrices) recipe.weight_decay = 0.01;
                recipe.decay = Decay::everything;
              },
          .is_on = [](const Recipe& recipe) { return recipe.decay == Decay::matrices; },
          .known = {.words = {"weight decay+group"}, .law = {.terms = {{.why = "the same update in two groups"}}}}};
}

}  // namespace stepladder
