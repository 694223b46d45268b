// LibTorch's operators in place of a plan's kernels: for runs that replace some of them (Recipe::without_kernel), and
// for products that they compute faster (plan/product_choice.h).
#pragma once

#include <set>
#include <string>

#include "engine/trainer/plan/plan_kernels.h"

namespace stepladder {

// at::mm on row-major copies of the weights.
template <class T>
ProductWay<T> library_products();

// The plan's own kernels but for the parts in `left_out` (kernel_parts.h).
template <class T>
PlanKernels<T> kernels_without(const std::set<std::string>& left_out);

}  // namespace stepladder
