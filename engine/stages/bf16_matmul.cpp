// bf16 inside float32 products: a CPU's counterpart of TF32.
//
// Tensors in memory stay float32, but a CPU with bf16 instructions (AVX512-BF16, AMX) may round the inputs of a matrix
// product to bf16 on the way into its tiles and add up in float32: PyTorch's matmul precision "medium". As with TF32 no
// line of the model changes. bf16 keeps 7 mantissa bits where TF32 keeps 10, so the loss moves a little more; and the
// conversion happens inside the product, each time, where autocast does it once.
#include "engine/stage.h"

namespace stepladder {

Stage stages::bf16_matmul() {
  return {.id = "bf16-matmul",
          .title = "bf16 matmuls",
          .why = "float32 products may round their inputs to bf16; pays on a CPU with AMX or AVX512-BF16.",
          .kind = StageKind::systems_only,
          .apply = [](Recipe& recipe) { recipe.matmul = MatmulPrecision::bf16; },
          .undo = [](Recipe& recipe) { recipe.matmul = MatmulPrecision::fp32; },
          .is_on = [](const Recipe& recipe) { return recipe.matmul == MatmulPrecision::bf16; },
          .unavailable = [](const Recipe&, const DeviceReport& report, const std::string& device) -> std::string {
            if (device != "cpu")
              return "made for CPUs, and this run is on " + device + ", where TF32 has the same role";
            return report.cpu_bf16 ? "" : "this CPU has no bf16 instructions (AVX512-BF16 or AMX)";
          },
          .needs_support = true,
          .known = {.law = {.terms = {{.device = "cpu",
                                       .kinds = {OperatorKind::products},
                                       .rule = LawRule::at_peak,
                                       .precision = "bf16",
                                       .at_most = true,
                                       .why = "products at the peak in bf16"}}}}};
}

}  // namespace stepladder
