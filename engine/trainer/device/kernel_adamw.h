// AdamW by the kernels of engine/kernels/adamw.cu: a few launches for all tensors, the clipping factor stays on the
// device, and the weights' copies for the products are written while the weights are in registers.
#pragma once

#include <memory>
#include <unordered_map>

#include "engine/trainer/device/device_kernels.h"
#include "engine/trainer/optimizer.h"

namespace stepladder {

// The copy of each parameter that products read, by its tensor; none if products read float32.
using Copies = std::unordered_map<c10::TensorImpl*, at::Tensor>;

// `kernels` must outlive it.
std::unique_ptr<AdamW> make_kernel_adamw(const Recipe& recipe, NamedTensors parameters, const DeviceKernels& kernels,
                                         Copies copies);

}  // namespace stepladder
