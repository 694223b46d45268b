// Where every ladder starts: GPT-2 as one writes it down from the paper.
//
// All numbers are float32, and float32 products keep every mantissa bit. Attention is spelled out: the (T, T) matrix of
// scores is computed, written to memory, masked, put through softmax, written again, and multiplied with the values.
// AdamW walks over the parameters one tensor after the other with a dozen small operations each. Nothing here is slow
// because it is wrong; the stages that follow find out what each of these choices costs.
#include "engine/stage.h"

namespace stepladder {

Stage stages::baseline() {
  return {
      .id = "baseline",
      .title = "Baseline",
      .why = "float32 throughout, attention spelled out, AdamW tensor by tensor: what the others are measured against.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe&) {}};
}

}  // namespace stepladder
