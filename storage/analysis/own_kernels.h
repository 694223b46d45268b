// The engine's own kernels by the names that they have in traces and profiles: those of the plan ("plan::qkv") and
// those of the stage compile ("stepladder::gelu"), of the backward pass too ("plan::qkv_backward").
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/analysis/step_profile.h"
#include "storage/by_enum.h"

namespace stepladder {

enum class ModelPart : std::uint8_t { unknown, embedding, attention, mlp, norm, head, loss };
inline constexpr auto all_model_parts = enumerators<ModelPart>();
std::string_view to_string(ModelPart part);  // "attention"; empty: not known

struct OwnKernel {
  std::string_view name;  // without namespace and "_backward"
  OperatorKind kind = OperatorKind::elementwise;
  ModelPart part = ModelPart::unknown;  // unknown: it works for several
  std::string_view pass;                // "backward", "optimizer"; empty: the forward pass, or its name's ending tells
};

// Null: another program's, or an operator of LibTorch.
const OwnKernel* find_own_kernel(std::string_view name);

// The pass in which the plan runs this kernel, whatever thread it is on: "backward", "optimizer". Empty: the forward
// pass, whose end computes some gradients too; or none of the plan's kernels.
std::string_view pass_of_plan_kernel(std::string_view name);

}  // namespace stepladder
