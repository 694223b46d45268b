// A step by the plan of engine/trainer/plan/: the `compile-max` stage on a CPU (engine/stages/compile_max.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/trainer/planned_model.h"
#include "engine/trainer/step/autograd_step.h"

namespace stepladder {

class PlannedStep : public Step {
 public:
  // `machine` is the hardware's name, by which the products' choices are kept (PlannedModel).
  PlannedStep(const StepContext& context, std::unique_ptr<AdamW> optimizer, std::string machine)
      : context_(context), machine_(std::move(machine)), optimizer_(std::move(optimizer)) {}

  AdamW& optimizer() override { return *optimizer_; }
  DataParallel::Gradients gradients() const override { return DataParallel::Gradients::planned; }
  // Throws a sentence too where `compile`'s whole step is faster here, so that the run goes on with that.
  double prepare(std::int64_t done) override;
  StepTensors take(std::int64_t step, double lr, const Mark& mark) override;
  double gradient_norm() override { return model_->gradient_norm(); }
  double loss(const Tokens& tokens) override { return model_->loss(tokens); }
  void show_kernels(Threads threads) override;
  std::vector<std::string> choices() const override { return choices_; }

 private:
  void backward(int micro);
  void choose_way();

  const StepContext context_;
  const std::string machine_;
  const std::unique_ptr<AdamW> optimizer_;
  std::unique_ptr<PlannedModel> model_;  // from `prepare` on
  std::vector<std::string> choices_;
  std::optional<PlannedModel::Observed> observed_;
};

}  // namespace stepladder
