// Before anything is made faster: can the model learn at all?
//
// The model trains on one batch again and again. With a million weights it can learn a few hundred tokens by heart, so
// the loss must fall to nearly zero. If it doesn't, some gradient is missing or wrong (a detached tensor, a wrong mask,
// targets that are not shifted by one), and no speed-up of such a model is worth anything. The check doesn't show that
// the model generalises: a loss of zero on one batch says nothing about the next one. So later rungs don't have it.
#include "engine/stage.h"

namespace stepladder {

Stage stages::overfit() {
  return {.id = "overfit",
          .title = "Overfit one batch",
          .why = "Trains on one batch only; the loss must fall to zero, else a gradient is missing or wrong.",
          .kind = StageKind::check,
          .apply = [](Recipe& recipe) { recipe.overfit = true; },
          .undo = [](Recipe& recipe) { recipe.overfit = false; },
          .is_on = [](const Recipe& recipe) { return recipe.overfit; },
          .known = {.words = {"overfit"}, .law = {.terms = {{.why = "each step has as much work as before"}}}}};
}

}  // namespace stepladder
