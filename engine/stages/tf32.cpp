// TF32 keeps float32's range but rounds matmul inputs to 10 mantissa bits, so that tensor cores can multiply them.
//
// Nearly all of a GPT's arithmetic is matrix products (6 x parameters per token), and an A100 does 156 TFLOP/s of them
// in TF32 against 19.5 in float32. Tensors in memory stay float32, sums are kept in float32, and no line of the model
// changes. The gain stays below that factor of eight, because everything around the products (softmax, LayerNorm,
// GELU, AdamW) waits for memory, and there is as much memory traffic as before.
#include "engine/stage.h"

namespace stepladder {

Stage stages::tf32() {
  return {.id = "tf32",
          .title = "TF32 matmuls",
          .why = "Tensor cores for float32 matrix products; the loss curve should not move.",
          .kind = StageKind::systems_only,
          .apply = [](Recipe& recipe) { recipe.matmul = MatmulPrecision::tf32; },
          .undo = [](Recipe& recipe) { recipe.matmul = MatmulPrecision::fp32; },
          .is_on = [](const Recipe& recipe) { return recipe.matmul == MatmulPrecision::tf32; },
          .unavailable = [](const Recipe&, const DeviceReport& report, const std::string& device) -> std::string {
            if (device != "cuda") return "TF32 is a format of NVIDIA tensor cores, and this run is on " + device;
            return report.older_than_ampere();
          },
          .needs_support = true,
          .known = {.words = {"precision+tf32", "matmul precision"},
                    .law = {.terms = {{.device = "cuda",
                                       .kinds = {OperatorKind::products},
                                       .rule = LawRule::at_peak,
                                       .precision = "tf32",
                                       .at_most = true,
                                       .why = "products at the peak in TF32"}},
                            .unknown = "TF32 exists on NVIDIA GPUs only"}}};
}

}  // namespace stepladder
