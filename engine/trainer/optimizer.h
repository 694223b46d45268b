// AdamW (Loshchilov and Hutter 2019), tensor by tensor or fused.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/recipe.h"
#include "engine/trainer/model.h"

namespace stepladder {

class AdamW {
 public:
  // Moments start at zero, on the parameters' device.
  AdamW(const Recipe& recipe, NamedTensors parameters);
  virtual ~AdamW() = default;

  // One step calls both, in this order. begin_step sets the numbers that change from step to step; gradients may be
  // computed before or after it. update moves every parameter by its gradient; it only starts work on the device.
  virtual void begin_step(double lr) = 0;
  virtual void update() = 0;

  // From here on begin_step writes its numbers to fixed places on the device, so that a captured update reads the
  // current ones. The results are the same, but an eager step on a GPU becomes slower.
  void prepare_replay();

  // Makes gradients undefined rather than zero: the next backward writes them instead of adding to them.
  void clear_gradients();

  // L2 norm over all gradients together, (), on their device.
  at::Tensor gradient_norm() const;

  // Scales all gradients by the same factor if their norm is above `highest` (Pascanu et al. 2013). Returns the norm
  // before scaling. `update` must follow.
  virtual at::Tensor clip_gradients(double highest);

  // State for a checkpoint: both moments by their parameter's name ("average.h.0.ln_1.weight",
  // "squared_average.h.0.ln_1.weight"), and the updates so far. The tensors are the optimiser's own.
  NamedTensors state() const;
  std::int64_t steps() const { return steps_; }

  // Everything that belongs to one parameter, in a fixed order; the tensors are the model's and the optimiser's own.
  struct Slot {
    std::string name;
    at::Tensor parameter, average, squared_average;
    double weight_decay = 0;
  };
  std::vector<Slot> slots() const;

  void set_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  // Parameters with the same decay. Tensors at the same index of the three lists belong together.
  struct Group {
    double weight_decay = 0;
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> averages;          // of gradients
    std::vector<at::Tensor> squared_averages;  // of their squares

    std::vector<at::Tensor> gradients() const;
  };

  virtual void place_numbers() = 0;  // allocates what begin_step writes, by number()
  at::Tensor number() const;         // ()
  at::TensorOptions device_options() const;

  double beta1_, beta2_, eps_;
  std::vector<Group> groups_;  // none is empty
  std::int64_t steps_ = 0;
  bool for_replay_ = false;

 private:
  std::vector<at::Tensor> gradients() const;
};

std::unique_ptr<AdamW> make_optimizer(const Recipe& recipe, NamedTensors parameters);

}  // namespace stepladder
