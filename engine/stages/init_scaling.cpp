// GPT-2's initial weights: std 0.02, and less for projections back into the residual stream.
//
// PyTorch draws an embedding with standard deviation 1 and linear layers within 1/sqrt(fan-in). A tied head then gives
// logits of a size near sqrt(C), and the first loss is far above ln V, the loss of a model that knows nothing yet. With
// 0.02 everywhere the first loss is ln V (10.82 for 50257 tokens). Each of the L blocks adds to the residual stream
// twice, and the variance of a sum of 2 L independent terms is 2 L times that of one; so the two projections that write
// into it start smaller by (2 L)^-0.5 (Radford et al. 2019, section 2.3), and the size of the output no longer depends
// on depth.
#include "engine/stage.h"

namespace stepladder {

Stage stages::init_scaling() {
  return {
      .id = "init-scaling",
      .title = "Scaled init",
      .why = "First weights with std 0.02, residual projections scaled by (2 x layers)^-0.5: training starts at ln V.",
      .kind = StageKind::changes_the_maths,
      .apply = [](Recipe& recipe) { recipe.init = Init::gpt2; },
      .undo = [](Recipe& recipe) { recipe.init = Init::pytorch; },
      .is_on = [](const Recipe& recipe) { return recipe.init == Init::gpt2; },
      .unavailable = [](const Recipe& recipe, const DeviceReport&, const std::string&) -> std::string {
        return recipe.weights.empty() ? "" : "the weights are loaded from " + recipe.weights;
      },
      .known = {.words = {"residual", "initialization"}, .law = {.terms = {{.why = "only the first weights change"}}}}};
}

}  // namespace stepladder
