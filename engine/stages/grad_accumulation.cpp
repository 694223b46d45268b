// Gradient accumulation: a large batch in small pieces.
//
// Gradients of a mean are means of gradients, so N micro-batches, each with its loss divided by N, add up to the
// gradient of the whole batch: the same update, and the same curve up to the order of a sum. Activations need 1/N of
// the memory, so the batch can be larger. It is no faster on its own: the arithmetic is the same, and smaller products
// run less efficiently. Where several processes train together it saves N - 1 of N exchanges, since gradients are
// averaged only once, in the last micro-batch's backward pass.
#include "engine/stage.h"

namespace stepladder {
namespace {

// The number of micro-batches that a batch is cut into: four, three or two, preferably so that two processes can still
// share each of them.
int pieces_of(int batch) {
  for (const int rows : {2, 1}) {
    for (const int pieces : {4, 3, 2})
      if (batch % (pieces * rows) == 0) return pieces;
  }
  return 1;
}

}  // namespace

Stage stages::grad_accumulation() {
  return {.id = "grad-accumulation",
          .title = "Gradient accumulation",
          .why = "Gradients of several micro-batches, added up: the same update with less memory, seldom faster.",
          .kind = StageKind::systems_only,
          .apply =
              [](Recipe& recipe) {
                const int pieces = pieces_of(recipe.batch);
                recipe.batch /= pieces;
                recipe.grad_accum *= pieces;
              },
          .is_on = [](const Recipe& recipe) { return recipe.grad_accum > 1; },
          .unavailable = [](const Recipe& recipe, const DeviceReport&, const std::string&) -> std::string {
            if (recipe.grad_accum > 1)
              return "the batch is already cut into " + std::to_string(recipe.grad_accum) + " micro-batches";
            return pieces_of(recipe.batch) > 1 ? "" : "a batch of " + std::to_string(recipe.batch) + " cannot be cut";
          },
          .seldom_faster =
              [](auto&&...) { return "it saves memory and seldom time: the same arithmetic in smaller products"; },
          .known = {.words = {"gradient accum", "grad accum"},
                    .law = {.terms = {{.at_most = true, .why = "as much arithmetic as before, in smaller products"}}}}};
}

}  // namespace stepladder
