// The kernels compute in other ways than LibTorch, so a run begins by comparing the two (prepare).
#include "engine/trainer/step/device_step.h"

namespace stepladder {

// Compares it with the model's own operations on one sequence, since its kernels were compiled for this card just now.
double DeviceStep::prepare(std::int64_t done) {
  model_->weights_changed();
  const Tokens batch = context_.batches.training(done + 1, 0);
  model_->verify({batch.inputs.narrow(0, 0, 1), batch.targets.narrow(0, 0, 1)});
  optimizer().clear_gradients();
  return missing;
}

std::vector<at::Tensor> DeviceStep::state() const {
  std::vector<at::Tensor> tensors = AutogradStep::state();
  for (at::Tensor& copy : model_->state()) tensors.push_back(std::move(copy));
  return tensors;
}

}  // namespace stepladder
