// What must fit together before a run is worth starting: recipe, data, weights and tokenizer. No torch.
#pragma once

#include "engine/files/tokenizer.h"
#include "engine/files/tokens.h"
#include "engine/recipe.h"

namespace stepladder {

struct Prepared {
  Recipe recipe;  // valid, with a known vocabulary and, where weights are given, the shape that they have
  TokenSource source;
};

// Opens the files, reads their headers and holds them against each other. Throws RecipeError or DataError with the
// sentence that the user needs. A run that goes on from a checkpoint has its shape already and does without the file of
// weights that it once started from.
enum class Start { fresh, checkpoint };
Prepared prepare(Recipe recipe, Start start = Start::fresh);

// What the model of this recipe speaks. Throws DataError, and RecipeError where it is not known.
Tokenizer tokenizer_of(const Recipe& recipe, const TokenSource& source);

}  // namespace stepladder
