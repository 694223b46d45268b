// The start of every ladder: GPT-2 as one writes it down from the paper.
//
// All numbers are float32, and float32 products keep every mantissa bit. Attention is spelled out: the (T, T) matrix of
// scores is computed, written to memory, masked, put through softmax, written again, and multiplied by the values.
// AdamW walks over the parameters one tensor after the other with a dozen small operations each. Nothing here is wrong;
// the stages that follow measure what each of these choices costs.
#include "engine/stage.h"

namespace stepladder {

Stage stages::baseline() {
  return {
      .id = "baseline",
      .title = "Baseline",
      .why = "float32 throughout, attention spelled out, AdamW tensor by tensor: the reference for all other rungs.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe&) {},
      .is_on = [](const Recipe&) { return true; },
      .known = {.words = {"baseline"}, .law = {.terms = {{.why = "nothing changes"}}}}};
}

}  // namespace stepladder
