// The kind of a GPU kernel, of a compiler's fused loop or of an operator, by whole words of its name: a word inside
// another word ("fbgemm", "bilinear") says nothing. Pure functions; the words are in kernel_families.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "storage/analysis/step_profile.h"

namespace stepladder {

// Names in rows of imported traces for the time in which a GPU had nothing to do. In a launch gap the CPU hadn't asked
// for the next kernel yet; in a gap between kernels it had.
inline constexpr std::string_view launch_gap = "launch gap";
inline constexpr std::string_view kernel_gap = "gap between kernels";
inline constexpr std::string_view idle_gap = "idle";  // without launches nobody can tell which

struct KernelKind {
  OperatorKind kind = OperatorKind::other;
  bool is_generic = false;  // "vectorized_elementwise_kernel": a specific kind of its operator counts more
};

// Nullopt if no family has this name.
std::optional<KernelKind> kernel_kind(std::string_view name);

// By the words of an operator's name, "aten::_scaled_dot_product_flash_attention"; nullopt: they don't give it.
std::optional<OperatorKind> operator_kind(std::string_view name);

// Whether the kernel moves values between ranks: it then counts as communication even inside the optimiser.
bool is_communication(std::string_view name);

// The words of a name in lower case with a space around each: " layer norm forward cuda kernel ". Words end at other
// characters, between letters and digits, and where a capital follows.
std::string words_of_name(std::string_view name);

}  // namespace stepladder
