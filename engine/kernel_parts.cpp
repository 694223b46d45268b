#include "engine/kernel_parts.h"

#include <algorithm>

#include "engine/nearest.h"

namespace stepladder {

const std::vector<KernelPart>& kernel_parts() {
  static const std::vector<KernelPart> parts = {
      {"products", "matrix products with packed weights"},
      {"add-norm", "residual add and LayerNorm in one pass"},
      {"attention", "attention in tiles"},
      {"gelu", "bias and GELU in one pass, with the slope kept"},
      {"softmax", "loss and the logits' gradient in one pass"},
      {"adamw", "AdamW in one pass"},
  };
  return parts;
}

std::set<std::string> kernels_left_out(const Recipe& recipe) {
  std::set<std::string> left_out;
  if (recipe.without_kernel.empty()) return left_out;
  std::vector<std::string> known;
  for (const KernelPart& part : kernel_parts()) known.emplace_back(part.name);
  for (std::string_view rest = recipe.without_kernel;;) {
    const std::size_t end = rest.find('+');
    const std::string name(rest.substr(0, end));
    if (std::ranges::find(known, name) == known.end())
      throw RecipeError(FieldName{"without_kernel"}, unknown_name(name, known));
    left_out.insert(name);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return left_out;
}

void require_kernels_to_leave_out(const Recipe& recipe) {
  if (recipe.without_kernel.empty() || recipe.compile == Compile::max) return;
  throw RecipeError(FieldName{"without_kernel"}, "only compile-max has kernels to leave out; add it as a stage");
}

}  // namespace stepladder
