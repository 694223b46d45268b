#include "engine/trainer/text_sample.h"

#include <gtest/gtest.h>

#include "engine/preparation.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

// On a GPU the context is padded, so that each token has the same shapes. The text must not change.
TEST(TextSample, PaddingChangesNothing) {
  Recipe recipe = tiny_recipe();
  recipe.vocab = 256;
  recipe.sample_tokens = 3 * recipe.seq;  // more than the model sees at once
  recipe.sample_prompt = "To be";
  const Tokenizer tokenizer = Tokenizer::bytes();
  for (const Attention attention : {Attention::explicit_scores, Attention::scaled_dot_product}) {
    recipe.attention = attention;
    const auto model = build_model(recipe);
    const auto sample = [&](SampleContext length) {
      return sample_text(*model, recipe, tokenizer, at::kCPU, 7, length);
    };
    const std::string text = sample(SampleContext::as_long_as_text);
    EXPECT_EQ(text.size(), 5u + 3u * 16u);
    EXPECT_EQ(sample(SampleContext::padded), text);
  }
}

}  // namespace
}  // namespace stepladder
