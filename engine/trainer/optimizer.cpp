#include "engine/trainer/optimizer.h"

#include <cmath>

namespace stepladder {
namespace {

// The operations, and their order, of torch.optim.AdamW(foreach=False).
class PlainAdamW : public AdamW {
 public:
  using AdamW::AdamW;

  void step() override {
    const at::NoGradGuard no_grad;
    ++steps_;
    const double correction1 = 1.0 - std::pow(beta1_, steps_);
    const double correction2_sqrt = std::sqrt(1.0 - std::pow(beta2_, steps_));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].grad();
      parameters_[i].mul_(1.0 - lr_ * weight_decay_);
      averages_[i].lerp_(gradient, 1.0 - beta1_);
      squared_averages_[i].mul_(beta2_).addcmul_(gradient, gradient, 1.0 - beta2_);
      const at::Tensor denominator = (squared_averages_[i].sqrt() / correction2_sqrt).add_(eps_);
      parameters_[i].addcdiv_(averages_[i], denominator, -lr_ / correction1);
    }
  }

 private:
  double steps_ = 0;
};

class FusedAdamW : public AdamW {
 public:
  FusedAdamW(const Recipe& recipe, std::vector<at::Tensor> parameters)
      : AdamW(recipe, std::move(parameters)),
        steps_(at::zeros({}, parameters_.front().options().requires_grad(false))),
        steps_of_each_(parameters_.size(), steps_) {}

  void step() override {
    const at::NoGradGuard no_grad;
    steps_.add_(1);
    at::_fused_adamw_(parameters_, gradients(), averages_, squared_averages_, /*max_exp_avg_sqs=*/{}, steps_of_each_,
                      lr_, beta1_, beta2_, weight_decay_, eps_, /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  at::Tensor steps_;                       // (), on the device, where the kernel reads it
  std::vector<at::Tensor> steps_of_each_;  // the same tensor for every parameter
};

}  // namespace

AdamW::AdamW(const Recipe& recipe, std::vector<at::Tensor> parameters)
    : lr_(recipe.lr),
      beta1_(recipe.beta1),
      beta2_(recipe.beta2),
      eps_(recipe.eps),
      weight_decay_(recipe.weight_decay),
      parameters_(std::move(parameters)) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters_) {
    averages_.push_back(at::zeros_like(parameter));
    squared_averages_.push_back(at::zeros_like(parameter));
  }
}

void AdamW::clear_gradients() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

double AdamW::gradient_norm() const {
  const at::NoGradGuard no_grad;
  return at::stack(at::_foreach_norm(gradients())).norm().item<double>();
}

std::vector<at::Tensor> AdamW::gradients() const {
  std::vector<at::Tensor> all;
  all.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) all.push_back(parameter.grad());
  return all;
}

std::unique_ptr<AdamW> make_optimizer(const Recipe& recipe, std::vector<at::Tensor> parameters) {
  if (recipe.optimizer == Optimizer::fused_adamw) return std::make_unique<FusedAdamW>(recipe, std::move(parameters));
  return std::make_unique<PlainAdamW>(recipe, std::move(parameters));
}

}  // namespace stepladder
