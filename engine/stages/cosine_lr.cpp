// A learning rate that climbs first and then falls along a cosine to a tenth.
//
// At the start the moments of AdamW are estimates from a handful of gradients, and a full step along them can do
// lasting harm; so the rate climbs in a straight line over the first steps. At the end a small rate lets the weights
// settle into the valley that large steps only bounced through; half a cosine gets there without a corner (Loshchilov
// and Hutter 2017; Brown et al. 2020, appendix B: down to 10 %). It changes what the model learns, not how fast a step
// is.
#include <algorithm>

#include "engine/stage.h"

namespace stepladder {

Stage stages::cosine_lr() {
  return {.id = "cosine-lr",
          .title = "Cosine schedule",
          .why = "Linear climb over a tenth of the steps, then a cosine down to 10 % of the learning rate.",
          .kind = StageKind::changes_the_maths,
          .apply =
              [](Recipe& recipe) {
                recipe.schedule = Schedule::cosine;
                recipe.lr_warmup = std::max<std::int64_t>(1, recipe.steps / 10);
              },
          .undo =
              [](Recipe& recipe) {
                recipe.schedule = Schedule::constant;
                recipe.lr_warmup = 0;
              },
          .is_on = [](const Recipe& recipe) { return recipe.schedule == Schedule::cosine; },
          .known = {.words = {"cosin"}, .law = {.terms = {{.why = "only a number changes"}}}}};
}

}  // namespace stepladder
