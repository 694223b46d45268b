// The parts of `compile-max` that a recipe can replace by LibTorch's operators, one by one, to measure the gain of
// each.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/recipe.h"

namespace stepladder {

struct KernelPart {
  std::string_view name;
  std::string_view does;
};

// All parts, in the order of a step.
const std::vector<KernelPart>& kernel_parts();

// The parts that Recipe::without_kernel names. Throws RecipeError for a part that doesn't exist, with the nearest one
// that does.
std::set<std::string> kernels_left_out(const Recipe& recipe);

// Throws RecipeError if the recipe replaces kernels of a step that has none of them.
void require_kernels_to_leave_out(const Recipe& recipe);

}  // namespace stepladder
