// Text that a model writes.
#pragma once

#include <torch/torch.h>

#include <string>

#include "engine/files/tokenizer.h"
#include "engine/recipe.h"
#include "engine/trainer/model.h"

namespace stepladder {

// The recipe's prompt and `sample_tokens` more, each drawn from the 200 likeliest at temperature 0.8 (nanoGPT's
// settings). The same model, seed and step give the same text; the run's own random generator stays unchanged.
std::string sample_text(const Gpt& model, const Recipe& recipe, const Tokenizer& tokenizer, at::Device device,
                        std::int64_t step);

}  // namespace stepladder
