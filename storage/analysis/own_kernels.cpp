#include "storage/analysis/own_kernels.h"

#include <algorithm>

namespace stepladder {
namespace {

constexpr std::array own_kernels{
    // The forward pass, in its order.
    OwnKernel{"embedding", OperatorKind::embedding, ModelPart::embedding},
    OwnKernel{"add_norm", OperatorKind::layer_norm}, OwnKernel{"qkv", OperatorKind::products, ModelPart::attention},
    OwnKernel{"split_heads", OperatorKind::copies, ModelPart::attention},
    OwnKernel{"causal_softmax", OperatorKind::softmax, ModelPart::attention},
    OwnKernel{"attention", OperatorKind::attention, ModelPart::attention},
    OwnKernel{"attention_out", OperatorKind::products, ModelPart::attention},
    OwnKernel{"fc", OperatorKind::products, ModelPart::mlp}, OwnKernel{"gelu", OperatorKind::gelu, ModelPart::mlp},
    OwnKernel{"fc_out", OperatorKind::products, ModelPart::mlp},
    OwnKernel{"logits", OperatorKind::products, ModelPart::head},
    OwnKernel{"softmax", OperatorKind::softmax, ModelPart::loss},
    OwnKernel{"classifier", OperatorKind::softmax, ModelPart::loss},  // and the gradient of the logits
    // The backward pass, where it isn't one of those.
    OwnKernel{"hidden_gradient", OperatorKind::products, ModelPart::head},
    OwnKernel{"head_gradient", OperatorKind::products, ModelPart::head},
    OwnKernel{"weight_gradient", OperatorKind::products, ModelPart::unknown, "backward"},
    OwnKernel{"bias_gradients", OperatorKind::elementwise, ModelPart::unknown, "backward"},
    // The update.
    OwnKernel{"gradient_norm", OperatorKind::optimizer, ModelPart::unknown, "optimizer"},
    OwnKernel{"adamw", OperatorKind::optimizer, ModelPart::unknown, "optimizer"},
    OwnKernel{"pack", OperatorKind::copies},  // of weights, for the products
};

constexpr std::string_view backward = "_backward";

}  // namespace

std::string_view to_string(ModelPart part) {
  return by_enum<ModelPart>("", "embedding", "attention", "MLP", "norm", "head", "loss")[part];
}

const OwnKernel* find_own_kernel(std::string_view name) {
  const std::size_t space = name.find("::");
  if (space == std::string_view::npos || (name.substr(0, space) != "plan" && name.substr(0, space) != "stepladder"))
    return nullptr;
  name.remove_prefix(space + 2);
  if (name.ends_with(backward)) name.remove_suffix(backward.size());
  const auto* const found = std::ranges::find(own_kernels, name, &OwnKernel::name);
  return found == own_kernels.end() ? nullptr : found;
}

std::string_view pass_of_plan_kernel(std::string_view name) {
  if (!name.starts_with("plan::")) return "";
  if (name.ends_with(backward)) return "backward";
  const OwnKernel* const known = find_own_kernel(name);
  return known ? known->pass : "";
}

}  // namespace stepladder
