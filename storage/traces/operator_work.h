// The least work of a PyTorch operator by its operands: the FLOPs of products and attention, and the bytes that it must
// read and write if each operand moves once. For rooflines (kind_roofline.h). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// An argument of an operator: tensors, or a number.
struct Operand {
  std::vector<std::int64_t> sizes;  // of one tensor; empty for a list of tensors
  double elements = 0;              // of all its tensors; 0: it has none
  double value_bytes = missing;     // of an element; missing: of a type that isn't known
  double number = missing;          // of a number; true is 1
};

struct Work {
  double flops = missing;  // missing: not counted, as those of everything that the memory limits
  double bytes = missing;
  bool is_known() const { return !is_missing(flops) || !is_missing(bytes); }
  Work& operator+=(const Work& more);  // what is missing adds nothing
  Work operator*(double factor) const;
};

// Neither is known of operators that aren't in its list, which has those that do their work themselves. Triton's
// kernels move each operand once. Stepladder's give theirs: two numbers, FLOPs and bytes
// (engine/trainer/profile/kernel_range.h).
// Attention has four FLOPs for each pair of a query and a key and each value of a head, ten in the backward pass, which
// computes the scores again (Dao 2023, FlashAttention-2, section 4.1); half of the pairs if it is causal, or if the
// trace doesn't say whether it is.
Work work_of(std::string_view name, std::span<const Operand> operands);

// The two matrices of a product, "128x64 64x256"; empty: it isn't one.
std::string product_shapes(std::string_view name, std::span<const Operand> operands);

// "c10::BFloat16": 2. A list's type isn't in a trace, and counts as float32. missing: no type of a tensor.
double value_bytes(std::string_view type);

}  // namespace stepladder
