// Checks before a run is started that recipe, data, weights and tokenizer fit together. No torch.
#pragma once

#include "engine/files/tokenizer.h"
#include "engine/files/tokens.h"
#include "engine/recipe.h"

namespace stepladder {

struct Prepared {
  Recipe recipe;  // valid, with a known vocabulary and, if weights are given, their shape
  TokenSource source;
};

// The recipe with absolute paths to data, weights and tokenizer, which mean the same from any folder.
Recipe with_absolute_paths(Recipe recipe);

// Opens the files, reads their headers and compares them. Throws RecipeError or DataError with a sentence for the user.
// A run that resumes from a checkpoint already has its shape and doesn't need the weights file that it started from.
enum class Start { fresh, checkpoint };
Prepared prepare(Recipe recipe, Start start = Start::fresh);

// Throws DataError if a new recipe names a tokenizer that can't be read, even if nothing needs it yet.
void require_tokenizer(const Recipe& recipe);

// The tokenizer for this recipe's model. Throws DataError, and RecipeError if the recipe names none.
Tokenizer tokenizer_of(const Recipe& recipe, const TokenSource& source);

}  // namespace stepladder
