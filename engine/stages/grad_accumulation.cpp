// Gradient accumulation: a large batch in small pieces.
//
// Gradients of a mean are means of gradients, so N micro-batches, each with its loss divided by N, add up to the
// gradient of the whole batch: same update, same curve but for the order of a sum. Memory for activations falls to one
// N-th, and with it the limit on the batch. It buys no speed on its own: the arithmetic is the same and smaller
// products run less well. Where several processes train together it saves N - 1 of N exchanges, since gradients need to
// meet only once, in the last micro-batch's backward pass.
#include "engine/stage.h"

namespace stepladder {
namespace {

// Micro-batches that a batch is cut into: four, three or two, so that what is left can still be shared by two processes
// where that goes.
int pieces_of(int batch) {
  for (const int rows : {2, 1}) {
    for (const int pieces : {4, 3, 2}) {
      if (batch % (pieces * rows) == 0) return pieces;
    }
  }
  return 1;
}

}  // namespace

Stage stages::grad_accumulation() {
  return {.id = "grad-accumulation",
          .title = "Gradient accumulation",
          .why = "The batch in several micro-batches, added up: same update with less memory, seldom faster.",
          .kind = StageKind::systems_only,
          .apply =
              [](Recipe& recipe) {
                const int pieces = pieces_of(recipe.batch);
                recipe.batch /= pieces;
                recipe.grad_accum *= pieces;
              },
          .unavailable = [](const Recipe& recipe, const DeviceReport&, const std::string&) -> std::string {
            if (recipe.grad_accum > 1)
              return "the batch comes in " + std::to_string(recipe.grad_accum) + " pieces already";
            return pieces_of(recipe.batch) > 1 ? "" : "a batch of " + std::to_string(recipe.batch) + " cannot be cut";
          }};
}

}  // namespace stepladder
