// The recipe's options on the command line: a preset, and the values that override it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/recipe.h"

namespace stepladder {

class RecipeOptions {
 public:
  void add_to(CLI::App& command);

  Recipe recipe() const;  // throws RecipeError
  // `recipe` with the given values; with a preset only if one was named. Throws RecipeError.
  Recipe over(Recipe recipe) const;
  bool any() const { return !model_.empty() || !given_.empty(); }

 private:
  std::string model_;                                       // empty: nano
  std::vector<std::pair<std::string, std::string>> given_;  // names as in `describe`, and their values
};

}  // namespace stepladder
