// The plain step, which every other way to take a step is compared with.
#include "engine/trainer/step/autograd_step.h"

#include "engine/trainer/settings.h"

namespace stepladder {

StepTensors AutogradStep::take(std::int64_t step, double lr, const Mark& mark) {
  optimizer_->begin_step(lr);
  return compute([&](int micro) { return context_.batches.training(step, micro); }, mark);
}

StepTensors AutogradStep::compute(const TokensOf& tokens_of, const Mark& mark) {
  const Recipe& recipe = context_.recipe;
  StepTensors result;
  optimizer_->clear_gradients();
  for (int micro = 0; micro < recipe.grad_accum; ++micro) {
    const Tokens tokens = tokens_of(micro);
    mark(&StepParts::data_ms);
    at::Tensor loss = forward(tokens);
    if (recipe.grad_accum > 1) loss = loss / recipe.grad_accum;
    mark(&StepParts::forward_ms);
    context_.parallel.backward(loss, /*average=*/micro == recipe.grad_accum - 1);
    result.loss = micro == 0 ? loss.detach() : result.loss + loss.detach();
    mark(&StepParts::backward_ms);
  }
  if (recipe.clip > 0) result.norm = optimizer_->clip_gradients(recipe.clip);
  optimizer_->update();
  updated();
  mark(&StepParts::optimizer_ms);
  return result;
}

at::Tensor AutogradStep::forward(const Tokens& tokens) {
  const AutocastScope autocast(context_.recipe.autocast, context_.device.type());
  return context_.model.loss(tokens.inputs, tokens.targets);
}

std::vector<at::Tensor> AutogradStep::state() const {
  std::vector<at::Tensor> tensors = tensors_of(named_parameters(context_.model));
  for (at::Tensor& moment : tensors_of(optimizer_->state())) tensors.push_back(std::move(moment));
  return tensors;
}

}  // namespace stepladder
