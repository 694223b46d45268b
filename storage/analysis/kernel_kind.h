// The kind of a GPU kernel, or of a compiler's fused loop, by its name. A pure function.
#pragma once

#include <optional>
#include <string_view>

#include "storage/analysis/step_profile.h"

namespace stepladder {

// Names in rows of imported traces for the time in which a GPU had nothing to do. In a launch gap the CPU hadn't asked
// for the next kernel yet; in a gap between kernels it had.
inline constexpr std::string_view launch_gap = "launch gap";
inline constexpr std::string_view kernel_gap = "gap between kernels";
inline constexpr std::string_view idle_gap = "idle";  // without launches nobody can tell which

// Nullopt if no word of the name gives the kind: the operator that launched the kernel then does.
std::optional<OperatorKind> kernel_kind(std::string_view name);

// Whether the kernel moves values between ranks: it then counts as communication even inside the optimiser.
bool is_communication(std::string_view name);

}  // namespace stepladder
