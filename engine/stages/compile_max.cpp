// Compiled and tuned: torch.compile's "max-autotune" tries several kernels for each operation and keeps the fastest.
//
// That needs kernels with something to choose: tile sizes, a number of stages, a split of the sum. Ours have one
// variant each so far, so this stage is listed but unavailable; other people's logs have it.
#include "engine/stage.h"

namespace stepladder {

Stage stages::compile_max() {
  return {
      .id = "compile-max",
      .title = "Compiled and tuned",
      .why = "Several variants of each kernel are timed and the fastest is kept.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe&) {},
      .is_on = [](const Recipe&) { return false; },
      .unavailable = [](auto&&...) -> std::string { return "nothing to tune yet: each fused kernel has one variant"; },
      .known = {.words = {"max autotune"}}};
}

}  // namespace stepladder
