// GPT-2's forward and backward pass by the kernels of engine/kernels and products with epilogues: the `compile-max`
// stage on an NVIDIA GPU (engine/stages/compile_max.cpp). Autograd orders the backward pass; the whole step is then
// captured as a graph (captured_step.h), so what autograd costs is paid once.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/recipe.h"
#include "engine/trainer/device/device_kernels.h"
#include "engine/trainer/device/kernel_adamw.h"
#include "engine/trainer/device/products.h"
#include "engine/trainer/model.h"
#include "engine/trainer/optimizer.h"
#include "engine/trainer/step_tensors.h"

namespace stepladder {

// Rows of the head's copy for the products. In bf16 it is padded with zeros, whatever the recipe says: cuBLASLt is slow
// where rows of logits begin at odd addresses.
std::int64_t head_rows(const Recipe& recipe);

class DeviceModel {
 public:
  // The launcher of the kernels, and the products.
  struct Device {
    std::unique_ptr<KernelLauncher> launcher;
    std::function<std::unique_ptr<Products>(const DeviceKernels&)> make_products = {};  // null: LibTorch's
  };

  // The model's parameters must stay where they are.
  DeviceModel(const Recipe& recipe, const Gpt& model, Device device);
  ~DeviceModel();
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  // An optimiser of all parameters: the recipe's, or its kernel. This must outlive it.
  std::unique_ptr<AdamW> make_optimizer() const;

  // As Gpt::loss; with gradients on, the backward pass adds the gradients of the loss divided by the recipe's number of
  // micro-batches to those of all parameters, in float32.
  at::Tensor loss(const Tokens& tokens) const;

  // Rounds the weights' copies for the products. Call it when anything but a step's own update has written weights.
  void weights_changed();
  // Call it after each update.
  void updated();

  // Compares loss and gradients of a micro-batch, (B, T), with those of the model's own operations. Throws a sentence
  // with both numbers if they differ by more than rounding explains. Leaves no gradients behind.
  void verify(const Tokens& tokens) const;

  // From now on LibTorch's products and kernels take the library's place; false if they do already.
  bool leave_library_products();

  // The tensors that a step changes beside weights and moments.
  std::vector<at::Tensor> state() const;

  const Products& products() const { return *products_; }

 private:
  LayerTensors layer(const Linear& linear) const;
  at::Tensor for_products(const at::Tensor& parameter) const;

  const Recipe recipe_;
  const Gpt& model_;
  const std::unique_ptr<KernelLauncher> launcher_;
  const DeviceKernels kernels_;
  std::unique_ptr<Products> products_;
  bool has_library_products_;
  at::Tensor all_copies_;  // one after the other
  Copies copies_;          // views into it
  at::Tensor head_;        // (head_rows, C), the head's copy with its padding; undefined without copies
};

}  // namespace stepladder
