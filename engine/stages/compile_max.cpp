// Planned: the whole step is known before the first one, so it is laid out once.
//
// torch.compile traces a step and generates fused kernels, but between them it still asks the allocator for memory,
// walks autograd's tape and calls the optimiser for each tensor; "max-autotune" then tries several kernels for each
// operation and keeps the fastest. GPT-2's step is the same each time, forward and backward, so on a CPU this stage
// goes further (engine/trainer/plan/gpt_plan.h): one list of phases on one piece of memory, with no tape, no dispatcher
// and no allocation in a step.
//
//   Rows of 64 tokens pass through a chain of kernels (attention's last product, add, norm, product, GELU, product,
//   add, norm, next queries, keys and values) while they are in the cache. Only attention and the weight gradients see
//   other rows, so a layer needs two meetings of the threads in each direction. Products are the plan's own
//   (products.h; for bf16 on CPUs with AMX or AVX512-BF16 pair_products.h): factors packed in panels, sums in
//   registers, no call that costs more than the product. Attention runs in tiles, forward and backward
//   (attention_tiles.h): no T x T in memory, the masked half not computed. Gradients accumulate in place; the weights'
//   packed copies (bf16 under autocast) are made once a step. Threads take tasks from a common counter (crew.h), so a
//   thread that another program has pushed aside delays one task and not the phase. Where a whole step by `compile`'s
//   operations turns out to be faster on a machine, the run goes on with that (engine/trainer/step/planned_step.h).
//
// On an NVIDIA GPU the step is a captured graph, as in `compile`, but what it starts is this program's own
// (engine/trainer/device/device_model.h). There a pass over memory is what costs: written operation by operation, the
// loss alone reads and writes the (B T, V) logits several times, mostly in float32.
//
//   Kernels (engine/kernels/*.cu) take add, norm and rounding in one pass, forward and backward; turn logits into their
//   gradient in one pass over each row, in place; and update all tensors in a few launches, clipping on the way and
//   writing the bf16 weights for the next step's products. They are compiled where they run, by the compiler that comes
//   with LibTorch, for that card and those shapes (kernel_module.h). Biases, GELU and their gradients happen in the
//   products' epilogues, which cuBLASLt has; weight gradients leave the product in float32; of the algorithms that it
//   offers for a shape the fastest is taken (lt_products.h). Attention is LibTorch's. Before the first step, loss and
//   gradients of a sequence are compared with LibTorch's own operations; a run whose kernels differ goes on with
//   `compile`.
#include "engine/architecture.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

FieldText unavailable_on_gpu(const Recipe& recipe, const DeviceReport& report) {
  if (report.gpus.empty()) return "no usable NVIDIA GPU";
  if (recipe.nproc > 1)
    return "a captured step cannot exchange gradients with other processes (" + FieldName{"nproc"} + ")";
  if (recipe.d_model > 4096) return "the kernels take models of at most 4,096 columns (" + FieldName{"d_model"} + ")";
  return report.step_capture_note.empty() ? report.gpu_kernels_note : report.step_capture_note;
}

}  // namespace

Stage stages::compile_max() {
  return {.id = "compile-max",
          .title = "Planned step",
          .why =
              "The whole step is laid out once: fused kernels and products in a fixed order on fixed memory, without a "
              "tape, a dispatcher or an allocation.",
          .kind = StageKind::systems_only,
          .apply = [](Recipe& recipe) { recipe.compile = Compile::max; },
          .undo = [](Recipe& recipe) { recipe.compile = Compile::off; },
          .is_on = [](const Recipe& recipe) { return recipe.compile == Compile::max; },
          .unavailable = [](const Recipe& recipe, const DeviceReport& report, const std::string& device) -> FieldText {
            if (device != "cpu" && device != "cuda")
              return "the plan is made for CPUs and NVIDIA GPUs, and this run is on " + device;
            if (!architecture_of(recipe).is_gpt2())
              return "the plan is made for GPT-2's LayerNorm, biases and tanh GELU";
            if (recipe.matmul == MatmulPrecision::bf16 && recipe.autocast == Autocast::off)
              return "the plan has no bf16 inside float32 products (bf16-matmul); use it with bf16, or with neither";
            return device == "cuda" ? unavailable_on_gpu(recipe, report) : "";
          },
          .needs_support = true,
          .known = {.words = {"max autotune"},
                    .law = {.terms = {{.kinds = {OperatorKind::products},
                                       .rule = LawRule::at_peak,
                                       .at_most = true,
                                       .why = "products at the peak"},
                                      {.kinds = {OperatorKind::gelu, OperatorKind::elementwise, OperatorKind::copies,
                                                 OperatorKind::softmax, OperatorKind::layer_norm,
                                                 OperatorKind::normalisation, OperatorKind::attention,
                                                 OperatorKind::embedding, OperatorKind::between, OperatorKind::other},
                                       .rule = LawRule::vanishes,
                                       .at_most = true,
                                       .why = "what is between two products, if it costs nothing in the cache"},
                                      {.kinds = {OperatorKind::optimizer},
                                       .rule = LawRule::moves_bytes,
                                       .amount = 28,
                                       .at_most = true,
                                       .why = "the update in one pass: 28 bytes a parameter"},
                                      {.device = "cuda",
                                       .kinds = {OperatorKind::idle},
                                       .rule = LawRule::vanishes,
                                       .at_most = true,
                                       .why = "launch gaps, if one call starts the whole step"}}}}};
}

}  // namespace stepladder
