// Text that a model writes.
#pragma once

#include <torch/torch.h>

#include <string>

#include "engine/files/tokenizer.h"
#include "engine/recipe.h"
#include "engine/trainer/model.h"

namespace stepladder {

// The tokens that the model sees for each that it writes: those so far, or those so far with padding up to the recipe's
// `seq`. Attention is causal, so the padding changes nothing; but a GPU's libraries prepare kernels for each length
// that they meet for the first time.
enum class SampleContext { as_long_as_text, padded };

// The recipe's prompt and `sample_tokens` more, each drawn from the 200 likeliest at temperature 0.8 (nanoGPT's
// settings). The same model, seed and step give the same text; the run's own random generator stays unchanged.
std::string sample_text(const Gpt& model, const Recipe& recipe, const Tokenizer& tokenizer, at::Device device,
                        std::int64_t step, SampleContext length);

}  // namespace stepladder
