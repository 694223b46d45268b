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

  // One step is both, in this order. What changes from step to step is taken in by begin_step, before the gradients or
  // after; update, which moves every parameter by its gradient, only starts work on the device.
  virtual void begin_step(double lr) = 0;
  virtual void update() = 0;

  // From here on begin_step writes its numbers to places on the device that stay where they are, so that an update that
  // was captured reads the present ones. Same results; on a GPU an eager step would only become slower.
  void prepare_replay();

  // Makes gradients undefined rather than zero: the next backward writes them instead of adding to them.
  void clear_gradients();

  // L2 norm over all gradients together, (), on their device.
  at::Tensor gradient_norm() const;

  // Scales all gradients by the same factor where their norm is above `highest` (Pascanu et al. 2013). The norm before.
  at::Tensor clip_gradients(double highest);

  // What a checkpoint keeps: both moments by their parameter's name ("average.h.0.ln_1.weight",
  // "squared_average.h.0.ln_1.weight"), and the updates so far. The tensors are the optimiser's own.
  NamedTensors state() const;
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  // Parameters that decay alike. Tensors of the same place in the three lists belong together.
  struct Group {
    double weight_decay = 0;
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> averages;          // of gradients
    std::vector<at::Tensor> squared_averages;  // of their squares

    std::vector<at::Tensor> gradients() const;
  };

  virtual void place_numbers() = 0;  // gives all that begin_step writes its place, by number()
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
