// AdamW (Loshchilov and Hutter 2019), tensor by tensor or fused. Every parameter is decayed.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "engine/recipe.h"

namespace stepladder {

class AdamW {
 public:
  // Moments start at zero, on the parameters' device.
  AdamW(const Recipe& recipe, std::vector<at::Tensor> parameters);
  virtual ~AdamW() = default;

  // Updates every parameter from its gradient.
  virtual void step() = 0;

  // Makes gradients undefined rather than zero: the next backward writes them instead of adding to them.
  void clear_gradients();

  // L2 norm over all gradients together.
  double gradient_norm() const;

 protected:
  double lr_, beta1_, beta2_, eps_, weight_decay_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> averages_;          // of gradients, one per parameter
  std::vector<at::Tensor> squared_averages_;  // of their squares

  std::vector<at::Tensor> gradients() const;
};

std::unique_ptr<AdamW> make_optimizer(const Recipe& recipe, std::vector<at::Tensor> parameters);

}  // namespace stepladder
