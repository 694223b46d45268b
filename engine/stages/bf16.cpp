// bf16 autocast: matrix products read and write 16-bit numbers, so they are faster and move half the bytes.
//
// bf16 is the upper half of a float32: the same 8 exponent bits, so nothing overflows and no loss scaling is needed (as
// fp16 would), but only 7 mantissa bits. Weights, their updates and the optimiser's moments stay float32: an update
// smaller than 1/256 of its weight would otherwise be lost. Autocast makes the 16-bit copies of the weights once a
// forward pass, runs the products with them, and leaves softmax, LayerNorm and the loss in float32.
#include "engine/stage.h"

namespace stepladder {

Stage stages::bf16() {
  return {.id = "bf16",
          .title = "bf16 autocast",
          .why =
              "Matrix products in 16 bits with float32's range, half the memory traffic; on a CPU it pays only "
              "with bf16 instructions (AVX512-BF16, AMX).",
          .kind = StageKind::systems_only,
          .apply = [](Recipe& recipe) { recipe.autocast = Autocast::bf16; },
          .undo = [](Recipe& recipe) { recipe.autocast = Autocast::off; },
          .is_on = [](const Recipe& recipe) { return recipe.autocast == Autocast::bf16; },
          .unavailable = [](const Recipe&, const DeviceReport& report, const std::string& device) -> std::string {
            if (device == "cpu") return "";
            if (device != "cuda") return "bf16 autocast is untested on " + device;
            return report.older_than_ampere();
          },
          .slow = [](const DeviceReport& report, const std::string& device) -> std::string {
            return device == "cpu" && !report.cpu_bf16 ? "this CPU has no bf16 instructions" : "";
          },
          .needs_support = true,
          .known = {.words = {"bf16", "bfloat16", "autocast"},
                    .law = {.terms = {{.kinds = {OperatorKind::products},
                                       .rule = LawRule::at_peak,
                                       .precision = "bf16",
                                       .at_most = true,
                                       .why = "products at the peak in bf16"},
                                      {.kinds = {OperatorKind::gelu, OperatorKind::elementwise, OperatorKind::copies,
                                                 OperatorKind::attention},
                                       .rule = LawRule::times,
                                       .amount = 0.5,
                                       .at_most = true,
                                       .why = "half the bytes; the casts that it adds aren't counted"}}}}};
}

}  // namespace stepladder
