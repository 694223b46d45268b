// The differences between a recipe's model and GPT-2. They follow from `Recipe::model`, which is stored with the run.
#pragma once

#include "engine/recipe.h"

namespace stepladder {

enum class Norm { layer_norm, rms_norm };  // rms_norm has neither a mean nor a bias
enum class Gelu { tanh, exact };           // GPT-2's approximation, or by the error function

struct Architecture {
  Norm norm = Norm::layer_norm;
  Gelu gelu = Gelu::tanh;
  bool biases = true;  // of the linear layers

  // GPT-2's weights have a common format, and its steps have fused kernels on a CPU.
  bool is_gpt2() const { return norm == Norm::layer_norm && gelu == Gelu::tanh && biases; }
};

// `seed-small` and `seed-medium`: RMSNorm, the exact GELU and no biases. All others: GPT-2's.
Architecture architecture_of(const Recipe& recipe);

}  // namespace stepladder
