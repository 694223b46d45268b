// Compiled: fewer passes over memory, fewer kernels to start.
//
// Written operation by operation, a training step starts a thousand kernels, and each of them reads its input from
// memory and writes its output back. torch.compile traces the step and generates fused kernels; here that is done by
// hand, for the places where it pays.
//
// On a CPU it is the classifier. Its logits are (B T, V): for 4,096 tokens and GPT-2's vocabulary 823 MB, and the plain
// way writes them, their log-softmax and their gradient, each into memory that was never touched before. The fused
// classifier takes rows in chunks that stay small, turns each chunk's logits into their gradient in place (softmax
// minus one at the target), and has multiplied them into both gradients before the next chunk comes
// (engine/trainer/classifier.h).
#include "engine/stage.h"

namespace stepladder {

Stage stages::compile() {
  return {.id = "compile",
          .title = "Compiled step",
          .why = "Head and loss as one fused kernel in chunks, forward and backward; the logits are never kept.",
          .kind = StageKind::systems_only,
          .apply = [](Recipe& recipe) { recipe.compile = Compile::on; },
          .undo = [](Recipe& recipe) { recipe.compile = Compile::off; },
          .unavailable = [](const Recipe&, const DeviceReport&, const std::string& device) -> std::string {
            return device == "cpu" ? "" : "the fused classifier is written for the CPU; this run is on " + device;
          }};
}

}  // namespace stepladder
