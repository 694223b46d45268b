#include "engine/preparation.h"

#include <algorithm>
#include <filesystem>

#include "engine/architecture.h"
#include "engine/files/weights_file.h"

namespace stepladder {
namespace {

constexpr int gpt2_head_width = 64;  // of all published sizes

void take_shape(Recipe& recipe, const WeightsFile& file) {
  const Gpt2Shape shape = file.gpt2_shape();
  const bool same_width = recipe.d_model == shape.d_model;
  recipe.layers = shape.layers;
  recipe.d_model = shape.d_model;
  if (shape.heads > 0)
    recipe.heads = shape.heads;
  else if (!same_width)
    recipe.heads = std::max(1, shape.d_model / gpt2_head_width);
  recipe.vocab = shape.vocab;
  recipe.tied_head = shape.tied_head;
  if (recipe.seq > shape.max_seq) {
    throw RecipeError(FieldName{"seq"}, std::to_string(recipe.seq) + " is too long: " + file.name() + " has " +
                                            std::to_string(shape.max_seq) + " positions");
  }
  const auto& presets = model_presets();
  const auto preset = std::ranges::find_if(presets, [&](const ModelPreset& known) {
    return known.layers == recipe.layers && known.d_model == recipe.d_model;
  });
  recipe.model = preset == presets.end() ? "from weights" : std::string(preset->name);
}

}  // namespace

Recipe with_absolute_paths(Recipe recipe) {
  for (std::string* path : {&recipe.data, &recipe.weights, &recipe.tokenizer})
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  return recipe;
}

Prepared prepare(Recipe recipe, Start start) {
  if (start == Start::fresh && !recipe.weights.empty() && !architecture_of(recipe).is_gpt2())
    throw RecipeError(FieldName{"weights"},
                      "files hold GPT-2's weights; this recipe has another norm, GELU or no biases");
  if (start == Start::fresh && !recipe.weights.empty()) take_shape(recipe, WeightsFile(recipe.weights));
  validate(recipe);
  TokenSource source = TokenSource::open(recipe.data, recipe.seq, recipe.seed);
  if (recipe.vocab == 0) recipe.vocab = source.vocab_needed();
  if (recipe.vocab < source.vocab_needed()) {
    throw RecipeError(FieldName{"vocab"}, std::to_string(recipe.vocab) + " is too small: " + source.description() +
                                              " needs " + std::to_string(source.vocab_needed()));
  }
  if (recipe.sample_every > 0) tokenizer_of(recipe, source);
  return {std::move(recipe), std::move(source)};
}

void require_tokenizer(const Recipe& recipe) {
  if (!recipe.tokenizer.empty()) Tokenizer::open(recipe.tokenizer);
}

Tokenizer tokenizer_of(const Recipe& recipe, const TokenSource& source) {
  if (recipe.tokenizer.empty()) {
    if (source.vocab_needed() <= 256) return Tokenizer::bytes();
    throw RecipeError(FieldName{"sample_every"}, "needs " + FieldName{"tokenizer"} +
                                                     " (tokenizer.json or merges.txt): " + source.description() +
                                                     " aren't bytes");
  }
  Tokenizer tokenizer = Tokenizer::open(recipe.tokenizer);
  if (tokenizer.vocab() > recipe.vocab) {
    throw RecipeError(FieldName{"tokenizer"}, recipe.tokenizer + " has " + std::to_string(tokenizer.vocab()) +
                                                  " tokens, the model " + std::to_string(recipe.vocab));
  }
  return tokenizer;
}

}  // namespace stepladder
