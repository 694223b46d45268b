// Calls the plan's passes in the order of a step. Scaling for clipping is part of the update, so that no pass over the
// gradients is added.
#include "engine/trainer/step/planned_step.h"

#include <stdexcept>

#include "engine/system_metrics.h"
#include "engine/trainer/settings.h"

namespace stepladder {

double PlannedStep::prepare(std::int64_t) {
  const Recipe& recipe = context_.recipe;
  model_ = std::make_unique<PlannedModel>(recipe, context_.model, *optimizer_, recipe.batch / recipe.nproc, machine_);
  choices_ = model_->choices();
  if (!machine_.empty() && recipe.nproc == 1 && recipe.without_kernel.empty()) choose_way();
  return missing;
}

// No machine is slower by the plan than by `compile`. What the comparison needed of memory is no step's.
void PlannedStep::choose_way() {
  const StepChoice choice = model_->compare_with([this](const Tokens& tokens) {
    const at::AutoGradMode with_gradients(true);
    const AutocastScope autocast(context_.recipe.autocast, at::kCPU);
    context_.model.loss(tokens.inputs, tokens.targets).backward();
  });
  reset_peak_resident_bytes();
  if (!choice.is_plan) throw std::runtime_error("its whole step is faster on this machine (" + choice.timings + ")");
  choices_.push_back("whole step: plan (" + choice.timings + ")");
}

StepTensors PlannedStep::take(std::int64_t step, double lr, const Mark& mark) {
  const Recipe& recipe = context_.recipe;
  model_->begin_step(lr);
  double loss = 0;
  for (int micro = 0; micro < recipe.grad_accum; ++micro) {
    const Tokens tokens = context_.batches.training(step, micro);
    mark(&StepParts::data_ms);
    loss += model_->forward(tokens, micro);
    mark(&StepParts::forward_ms);
    backward(micro);
    mark(&StepParts::backward_ms);
  }
  StepTensors result{.loss = at::scalar_tensor(loss, at::kDouble)};
  double factor = 1;
  if (recipe.clip > 0) {
    const double norm = model_->gradient_norm();
    result.norm = at::scalar_tensor(norm, at::kDouble);
    // As AdamW::clip_gradients; a NaN stays one.
    if (!(norm + 1e-6 <= recipe.clip)) factor = recipe.clip / (norm + 1e-6);
  }
  model_->update(factor);
  mark(&StepParts::optimizer_ms);
  return result;
}

// With several processes, the last micro-batch's pass sends the gradients while it computes the rest.
void PlannedStep::backward(int micro) {
  const Recipe& recipe = context_.recipe;
  if (recipe.nproc == 1 || micro < recipe.grad_accum - 1) return model_->backward(micro);
  model_->backward(micro, [this](const at::Tensor& gradients) { context_.parallel.begin_average(gradients); });
  context_.parallel.finish_averages();
}

void PlannedStep::show_kernels(Threads threads) {
  if (!observed_ || threads == Threads::calling) observed_.emplace(*model_);
  if (threads == Threads::all) observed_->share_observers();
}

}  // namespace stepladder
