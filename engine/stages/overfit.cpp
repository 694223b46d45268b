// Before anything is made faster: can the model learn at all?
//
// One batch is shown again and again. A model with a million weights can learn a few hundred tokens by heart, so the
// loss must go to nearly zero; where it does not, a gradient does not arrive (a detached tensor, a wrong mask, targets
// that are not shifted by one), and no speed-up on top of that is worth anything. What it does not show is learning: a
// loss of zero on one batch says nothing about the next one. So this rung stands alone, and those above do without it.
#include "engine/stage.h"

namespace stepladder {

Stage stages::overfit() {
  return {.id = "overfit",
          .title = "Overfit one batch",
          .why = "The same batch again and again; the loss must go to zero, else a gradient does not arrive.",
          .kind = StageKind::check,
          .apply = [](Recipe& recipe) { recipe.overfit = true; },
          .undo = [](Recipe& recipe) { recipe.overfit = false; }};
}

}  // namespace stepladder
