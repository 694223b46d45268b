// The tensors that go into a training step and come out of it.
#pragma once

#include <ATen/core/Tensor.h>

namespace stepladder {

// One micro-batch, (B, T) each.
struct Tokens {
  at::Tensor inputs, targets;
};

// A step's results for its record: the mean loss over its micro-batches and, if gradients are clipped, their norm
// before; both (), on the device.
struct StepTensors {
  at::Tensor loss, norm;
};

}  // namespace stepladder
