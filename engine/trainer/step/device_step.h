// A step whose forward and backward pass are kernels of our own on an NVIDIA GPU
// (engine/trainer/device/device_model.h). Autograd orders them; CapturedStep then records the whole step, so what
// autograd costs is paid once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/trainer/device/device_model.h"
#include "engine/trainer/step/autograd_step.h"

namespace stepladder {

class DeviceStep : public AutogradStep {
 public:
  DeviceStep(const StepContext& context, std::unique_ptr<DeviceModel> model)
      : AutogradStep(context, model->make_optimizer()), model_(std::move(model)) {}

  ~DeviceStep() override { optimizer_.reset(); }  // it refers to the model's kernels

  double prepare(std::int64_t done) override;
  std::vector<std::string> choices() const override { return model_->products().choices(); }
  std::string without_library() const override { return without_library_; }
  std::vector<at::Tensor> state() const override;

 protected:
  at::Tensor forward(const Tokens& tokens) override { return model_->loss(tokens); }
  void updated() override { model_->updated(); }

 private:
  const std::unique_ptr<DeviceModel> model_;
  std::string without_library_;
};

}  // namespace stepladder
