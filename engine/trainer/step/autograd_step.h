// A step by LibTorch's autograd: the model's own operations, one by one.
#pragma once

#include <memory>
#include <vector>

#include "engine/trainer/model.h"
#include "engine/trainer/step/micro_batches.h"
#include "engine/trainer/step/step.h"

namespace stepladder {

// What steps work on. All of it outlives them, and the model's parameters stay where they are.
struct StepContext {
  const Recipe& recipe;
  Gpt& model;
  DataParallel& parallel;
  MicroBatches& batches;
  at::Device device;
};

class AutogradStep : public Step {
 public:
  AutogradStep(const StepContext& context, std::unique_ptr<AdamW> optimizer)
      : context_(context), optimizer_(std::move(optimizer)) {}

  AdamW& optimizer() override { return *optimizer_; }
  double prepare(std::int64_t) override { return missing; }
  StepTensors take(std::int64_t step, double lr, const Mark& mark) override;
  double loss(const Tokens& tokens) override { return forward(tokens).item<double>(); }

  // For CapturedStep, which records it. Everything that `take` does after AdamW::begin_step; asks for the micro-batches
  // in order.
  using TokensOf = std::function<Tokens(int micro)>;
  StepTensors compute(const TokensOf& tokens_of, const Mark& mark);

  // Everything that steps change.
  virtual std::vector<at::Tensor> state() const;

 protected:
  // The mean loss, (); with gradients on, autograd can go back from it to all parameters.
  virtual at::Tensor forward(const Tokens& tokens);
  // After each update.
  virtual void updated() {}

  const StepContext context_;
  std::unique_ptr<AdamW> optimizer_;
};

}  // namespace stepladder
