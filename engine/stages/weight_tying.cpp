// Weight tying: the matrix that reads tokens is the matrix that predicts them.
//
// The embedding has one row of C numbers for each of V tokens; so has the head, which compares the last hidden state
// with every row. Tokens that mean nearly the same should be close in both, so one matrix can do both jobs (Press and
// Wolf 2017; Vaswani et al. 2017, section 3.4). For GPT-2 small that is 38.6 million fewer parameters (V x C), nearly a
// third of the model, with their gradients and two moments each. The head's arithmetic stays; the optimiser's pass and
// the memory shrink. The matrix then gets gradients from both ends, so the loss curve changes.
//
// It must be one storage, not an equal copy: a misspelt tie (`wte.weights = ...` in Python makes a new attribute and no
// error) trains two matrices, without any visible sign.
#include "engine/stage.h"

namespace stepladder {

Stage stages::weight_tying() {
  return {.id = "weight-tying",
          .title = "Weight tying",
          .why = "Token embedding and head share one matrix: V x C fewer parameters to update and store.",
          .kind = StageKind::changes_the_maths,
          .apply = [](Recipe& recipe) { recipe.tied_head = true; },
          .undo =
              [](Recipe& recipe) {
                if (recipe.weights.empty()) recipe.tied_head = false;
              },
          .is_on = [](const Recipe& recipe) { return recipe.tied_head; },
          .unavailable = [](const Recipe& recipe, const DeviceReport&, const std::string&) -> std::string {
            return recipe.weights.empty() ? "" : "the head is loaded from " + recipe.weights;
          },
          .known = {.words = {"weight shar", "weight tying", "tied+head"},
                    .law = {.terms = {{.kinds = {OperatorKind::optimizer},
                                       .rule = LawRule::by_parameters,
                                       .why = "fewer parameters to update"}}}}};
}

}  // namespace stepladder
