// A vocabulary of nice numbers: 50257 becomes 50304.
//
// The head is the largest product of a small GPT, (B T, C) x (C, V), and 50257 is odd: no tile of 64 or 128 columns
// fits, so kernels fall back to slower ones or finish with a ragged edge, and rows of logits begin at addresses that
// are not aligned for vector loads. 50304 = 393 x 128 costs 0.1 % more arithmetic and can still be a few percent
// faster.
//
// The 47 new logits must never win: they are minus infinity, so their probability is exactly zero, and the loss equals
// that of the unpadded model but for rounding.
#include "engine/stage.h"

namespace stepladder {

Stage stages::padded_vocab() {
  return {.id = "padded-vocab",
          .title = "Padded vocabulary",
          .why = "Rows of the head padded to a multiple of 128, so that tiles fit; padded logits can never win.",
          .kind = StageKind::systems_only,
          .apply = [](Recipe& recipe) { recipe.vocab_multiple = 128; },
          .undo = [](Recipe& recipe) { recipe.vocab_multiple = 1; },
          .is_on = [](const Recipe& recipe) { return recipe.vocab_multiple % 128 == 0; },
          .unavailable = [](const Recipe& recipe, const DeviceReport&, const std::string&) -> std::string {
            const bool fits = recipe.vocab > 0 && recipe.vocab % 128 == 0;
            return fits ? "a vocabulary of " + std::to_string(recipe.vocab) + " is already a multiple of 128" : "";
          },
          .known = {.words = {"nice numbers", "vocab"},
                    .law = {.terms = {{.kinds = {OperatorKind::products},
                                       .part = ModelPart::head,
                                       .rule = LawRule::at_peak,
                                       .at_most = true,
                                       .why = "the head's products at the peak"}}}}};
}

}  // namespace stepladder
