// The kernels compute in other ways than LibTorch, so a run begins by comparing the two (prepare).
#include "engine/trainer/step/device_step.h"

#include <stdexcept>

namespace stepladder {

// Compares it with the model's own operations, since its kernels were compiled for this card just now. The products'
// algorithms are chosen meanwhile, so the batch is as large as those that follow.
double DeviceStep::prepare(std::int64_t done) {
  model_->weights_changed();
  const Tokens tokens = context_.batches.training(done + 1, 0);
  try {
    model_->verify(tokens);
  } catch (const std::runtime_error& error) {
    if (!model_->leave_library_products()) throw;
    model_->verify(tokens);
    without_library_ = error.what();
  }
  return missing;
}

std::vector<at::Tensor> DeviceStep::state() const {
  std::vector<at::Tensor> tensors = AutogradStep::state();
  for (at::Tensor& copy : model_->state()) tensors.push_back(std::move(copy));
  return tensors;
}

}  // namespace stepladder
