// PlainAdamW follows torch.optim.AdamW(foreach=False) operation by operation; FusedAdamW calls LibTorch's kernel. The
// moments are in the order of the parameters within two groups (decaying or not). A number that a captured update reads
// must be a tensor on the device.
#include "engine/trainer/optimizer.h"

#include <cmath>

namespace stepladder {
namespace {

// Uses the operations of torch.optim.AdamW(foreach=False), in their order.
class PlainAdamW : public AdamW {
 public:
  PlainAdamW(const Recipe& recipe, NamedTensors parameters)
      : AdamW(recipe, std::move(parameters)), decay_of_(groups_.size()) {
    place_numbers();
  }

  void begin_step(double lr) override {
    const at::NoGradGuard no_grad;
    ++steps_;
    const double correction1 = 1.0 - std::pow(beta1_, static_cast<double>(steps_));
    const double correction2 = 1.0 - std::pow(beta2_, static_cast<double>(steps_));
    for (std::size_t i = 0; i < groups_.size(); ++i) decay_of_[i].fill_(1.0 - lr * groups_[i].weight_decay);
    correction2_sqrt_.fill_(std::sqrt(correction2));
    step_size_ = -lr / correction1;
    if (for_replay_) step_size_on_device_.fill_(step_size_);
  }

  void update() override {
    const at::NoGradGuard no_grad;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      Group& group = groups_[g];
      for (std::size_t i = 0; i < group.parameters.size(); ++i) {
        at::Tensor& parameter = group.parameters[i];
        const at::Tensor& gradient = parameter.grad();
        parameter.mul_(decay_of_[g]);
        group.averages[i].lerp_(gradient, 1.0 - beta1_);
        group.squared_averages[i].mul_(beta2_).addcmul_(gradient, gradient, 1.0 - beta2_);
        const at::Tensor denominator = group.squared_averages[i].sqrt().div_(correction2_sqrt_).add_(eps_);
        if (for_replay_) {  // addcdiv_ takes no tensor as its factor; the same in three passes
          parameter.add_((group.averages[i] * step_size_on_device_).div_(denominator));
        } else {
          parameter.addcdiv_(group.averages[i], denominator, step_size_);
        }
      }
    }
  }

 private:
  void place_numbers() override {
    for (at::Tensor& decay : decay_of_) decay = number();
    correction2_sqrt_ = number();
    if (for_replay_) step_size_on_device_ = number();
  }

  std::vector<at::Tensor> decay_of_;  // each group's 1 - lr x weight decay
  at::Tensor correction2_sqrt_;
  double step_size_ = 0;
  at::Tensor step_size_on_device_;
};

class FusedAdamW : public AdamW {
 public:
  FusedAdamW(const Recipe& recipe, NamedTensors parameters)
      : AdamW(recipe, std::move(parameters)), step_(at::zeros({}, device_options())) {
    place_numbers();
  }

  void begin_step(double lr) override {
    const at::NoGradGuard no_grad;
    ++steps_;
    step_.fill_(steps_);
    lr_.fill_(lr);
  }

  void update() override {
    const at::NoGradGuard no_grad;
    for (Group& group : groups_) {
      const std::vector<at::Tensor> step_of_each(group.parameters.size(), step_);
      at::_fused_adamw_(group.parameters, group.gradients(), group.averages, group.squared_averages,
                        /*max_exp_avg_sqs=*/{}, step_of_each, lr_, beta1_, beta2_, group.weight_decay, eps_,
                        /*amsgrad=*/false, /*maximize=*/false);
    }
  }

 private:
  void place_numbers() override { lr_ = number(); }

  at::Tensor step_;  // (), on the device, where the kernel reads it
  at::Tensor lr_;    // (); the kernel reads it on the device, or the call on the CPU
};

}  // namespace

AdamW::AdamW(const Recipe& recipe, NamedTensors parameters)
    : beta1_(recipe.beta1), beta2_(recipe.beta2), eps_(recipe.eps) {
  const at::NoGradGuard no_grad;
  Group decaying{.weight_decay = recipe.weight_decay};
  Group others;  // biases and LayerNorms, if only matrices decay
  for (auto& [name, parameter] : parameters) {
    Group& group = recipe.decay == Decay::everything || parameter.dim() >= 2 ? decaying : others;
    group.names.push_back(name);
    group.averages.push_back(at::zeros_like(parameter));
    group.squared_averages.push_back(at::zeros_like(parameter));
    group.parameters.push_back(std::move(parameter));
  }
  for (Group* group : {&decaying, &others}) {
    if (!group->parameters.empty()) groups_.push_back(std::move(*group));
  }
}

void AdamW::prepare_replay() {
  for_replay_ = true;
  place_numbers();
}

at::TensorOptions AdamW::device_options() const {
  return groups_.front().parameters.front().options().requires_grad(false);
}

// Eager kernels take a number from the CPU's memory as their argument, with all its digits. A graph would keep that
// argument forever, so it reads the number from the device, in the type that the fused kernel reads.
at::Tensor AdamW::number() const {
  const at::TensorOptions on_device = device_options();
  return for_replay_ && !on_device.device().is_cpu() ? at::zeros({}, on_device) : at::zeros({}, at::kDouble);
}

void AdamW::clear_gradients() {
  for (Group& group : groups_) {
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

at::Tensor AdamW::gradient_norm() const {
  const at::NoGradGuard no_grad;
  return at::stack(at::_foreach_norm(gradients())).norm();
}

at::Tensor AdamW::clip_gradients(double highest) {
  const at::NoGradGuard no_grad;
  const at::Tensor norm = gradient_norm();
  // As torch.nn.utils.clip_grad_norm_: multiplies by 1 if no clipping is needed, so that nobody waits for the norm.
  const at::Tensor factor = (highest / (norm + 1e-6)).clamp_max(1.0);
  at::_foreach_mul_(gradients(), factor);
  return norm;
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      state.emplace_back("average." + group.names[i], group.averages[i]);
      state.emplace_back("squared_average." + group.names[i], group.squared_averages[i]);
    }
  }
  return state;
}

std::vector<AdamW::Slot> AdamW::slots() const {
  std::vector<Slot> slots;
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      slots.push_back({.name = group.names[i],
                       .parameter = group.parameters[i],
                       .average = group.averages[i],
                       .squared_average = group.squared_averages[i],
                       .weight_decay = group.weight_decay});
    }
  }
  return slots;
}

std::vector<at::Tensor> AdamW::Group::gradients() const {
  std::vector<at::Tensor> all;
  all.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters) all.push_back(parameter.grad());
  return all;
}

std::vector<at::Tensor> AdamW::gradients() const {
  std::vector<at::Tensor> all;
  for (const Group& group : groups_) {
    for (at::Tensor& gradient : group.gradients()) all.push_back(std::move(gradient));
  }
  return all;
}

std::unique_ptr<AdamW> make_optimizer(const Recipe& recipe, NamedTensors parameters) {
  if (recipe.optimizer == Optimizer::fused_adamw) return std::make_unique<FusedAdamW>(recipe, std::move(parameters));
  return std::make_unique<PlainAdamW>(recipe, std::move(parameters));
}

}  // namespace stepladder
