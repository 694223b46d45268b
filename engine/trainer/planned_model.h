// A model computed by the plan of engine/trainer/plan/, for PlannedStep (step/planned_step.h).
// Parameters and moments stay the model's and the optimiser's own tensors, so checkpoints, samples and resuming work as
// in any other run; their gradients are views into one flat tensor.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/recipe.h"
#include "engine/trainer/model.h"
#include "engine/trainer/optimizer.h"
#include "engine/trainer/plan/gpt_plan.h"
#include "engine/trainer/plan/product_choice.h"
#include "engine/trainer/step_tensors.h"

namespace stepladder {

class PlannedModel {
 public:
  // `sequences` of each micro-batch are this process's. Model and optimiser must outlive this; nobody may move their
  // tensors meanwhile. With `machine`, the hardware's name, ways to compute the products are timed, for a second at
  // most, and the choices kept (plan/product_choice.h); with none, products are the plan's own.
  PlannedModel(const Recipe& recipe, const Gpt& model, AdamW& optimizer, std::int64_t sequences,
               const std::string& machine = {});

  // The choices of the products, a line each.
  const std::vector<std::string>& choices() const { return choices_; }

  // Compares the plan with another way to compute the same forward and backward pass on tokens (B, T); for a machine
  // that has a name. Leaves weights and moments as they are, and writes the gradients.
  StepChoice compare_with(const std::function<void(const Tokens&)>& other);

  // Call it after something else has written weights.
  void weights_changed() { plan_->weights_changed(); }

  // One step calls these in this order, forward and backward once for each micro-batch, which count from 0. Each
  // returns when the work is done. `forward` returns the micro-batch's share of the step's loss.
  void begin_step(double lr);
  double forward(const Tokens& tokens, int micro);
  // `ready`, if there is one, is called with pieces of all gradients, (n), of `piece` elements (DDP sends 25 MiB at
  // once), the last one smaller, as soon as nothing more is added to them.
  using Ready = std::function<void(const at::Tensor& gradients)>;
  void backward(int micro, const Ready& ready = {}, std::int64_t piece = (25 << 20) / 4);
  double gradient_norm() { return plan_->gradient_norm(); }
  void update(double gradient_factor);

  // The mean loss, without gradients.
  double loss(const Tokens& tokens);

  // While it lives, LibTorch's observers see the kernels that the calling thread runs.
  class Observed {
   public:
    explicit Observed(PlannedModel& step);
    ~Observed();
    Observed(const Observed&) = delete;
    Observed& operator=(const Observed&) = delete;

    // Lets the observers that the calling thread has at this moment see the other workers' kernels too. Call it between
    // steps.
    void share_observers();

   private:
    class Watch;
    PlannedModel& step_;
    const std::unique_ptr<Watch> watch_;
  };

 private:
  Tokens checked(const Tokens& tokens) const;
  template <class T>
  std::unique_ptr<GptPlan> make_plan(const PlanParameters& parameters);

  const Recipe recipe_;
  const PlanShape shape_;
  const std::string machine_;
  AdamW& optimizer_;
  double lr_ = 0;
  Tokens tokens_;         // of the forward pass under way; the backward pass reads them again
  at::Tensor gradients_;  // of all parameters: the last layer's first, then in the order of the backward pass
  std::vector<std::int64_t> layer_end_;  // of each layer: how many of them are ready when its own are
  std::vector<std::string> choices_;
  std::unique_ptr<GptPlan> plan_;
};

}  // namespace stepladder
