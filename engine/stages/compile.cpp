// Compiled: fewer passes over memory, fewer kernels to start.
//
// Written operation by operation, a training step starts a thousand kernels, and each of them reads its input from
// memory and writes its output back. torch.compile traces the step, generates fused kernels and starts them as one
// graph; here the two halves of that are done by hand, each for the device where it pays.
//
// On a GPU the launches cost time. Each takes the CPU some five microseconds, whatever the kernel does: where kernels
// are shorter than that, the GPU waits for the next one most of the time. So the whole step (clear gradients, forward,
// backward, clip, update) is captured once as a CUDA graph and replayed by one launch
// (engine/trainer/step/captured_step.h). A graph keeps addresses and plain numbers as they were when it was captured.
// Values that change from step to step must therefore stay in the same memory: tokens, learning rate, bias corrections.
// And nothing in it may wait for the device, so the loss is read after the replay. Before the first step a few replays
// are compared with direct steps; if they differ, the run takes plain steps and says so with both numbers.
//
// On a CPU the passes cost time. Products run near the machine's peak there. Each operation between them reads its
// input from memory, changes it by an addition or two, and writes it back; some of those operations are slow in
// themselves: a tanh for each of GELU's elements, forward and again backward. So everything between two products
// becomes one loop over rows that stay in the cache, forward and backward (engine/trainer/kernels/fused_blocks.h):
//   bias and GELU, with one exponential for value and slope, the slope kept for the backward pass (fused_mlp);
//   the bias of a block's last product, the residual add, LayerNorm, and the rounding for the next product
//   (fused_add_norm);
//   scale, causal mask and softmax of attention spelled out, without the half that is masked (fused_attention).
// Gradients of biases and norms are summed up in the same passes.
//
// And the classifier: its logits are (B T, V), for 4,096 tokens and GPT-2's vocabulary 823 MB, and the plain way writes
// them, their log-softmax and their gradient, each into fresh memory. The fused classifier takes rows in small chunks,
// turns each chunk's logits into their gradient in place (softmax minus one at the target), and multiplies them into
// both gradients before it takes the next chunk (engine/trainer/kernels/classifier.h).
#include "engine/architecture.h"
#include "engine/stage.h"

namespace stepladder {

Stage stages::compile() {
  return {
      .id = "compile",
      .title = "Compiled step",
      .why =
          "On a GPU the whole step is captured once and started by one call; on a CPU everything between two "
          "products (GELU, add and norm, masked softmax, loss) is one fused kernel.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe& recipe) { recipe.compile = Compile::on; },
      .undo = [](Recipe& recipe) { recipe.compile = Compile::off; },
      .is_on = [](const Recipe& recipe) { return recipe.compile == Compile::on; },
      .unavailable = [](const Recipe& recipe, const DeviceReport& report, const std::string& device) -> FieldText {
        if (device == "cpu")
          return architecture_of(recipe).is_gpt2() ? ""
                                                   : "the kernels are made for GPT-2's LayerNorm, biases and tanh GELU";
        if (device != "cuda") return "made for CPUs and NVIDIA GPUs, and this run is on " + device;
        if (report.gpus.empty()) return "no usable NVIDIA GPU";
        if (recipe.nproc > 1)
          return "a captured step cannot exchange gradients with other processes (" + FieldName{"nproc"} + ")";
        return report.step_capture_note;
      },
      .needs_support = true,
      .known = {.words = {"torch compile", "compile"},
                .law = {.terms = {{.device = "cpu",
                                   .kinds = {OperatorKind::gelu, OperatorKind::elementwise, OperatorKind::copies,
                                             OperatorKind::softmax, OperatorKind::layer_norm,
                                             OperatorKind::normalisation, OperatorKind::between, OperatorKind::other},
                                   .rule = LawRule::vanishes,
                                   .at_most = true,
                                   .why = "what is between two products, if the fused loops cost nothing"},
                                  {.device = "cuda",
                                   .kinds = {OperatorKind::idle},
                                   .rule = LawRule::vanishes,
                                   .at_most = true,
                                   .why = "launch gaps, if one call starts the whole step"}}}}};
}

}  // namespace stepladder
