// Products by cuBLASLt itself: biases, GELU and bias gradients in the product's epilogue, weight gradients in float32
// from bf16 factors, and the fastest of the algorithms that it offers for each shape. Where an epilogue is slower than
// a kernel behind the plain product, that is taken.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/trainer/cache/kept_choices.h"
#include "engine/trainer/device/lt_api.h"
#include "engine/trainer/device/products.h"

namespace stepladder {

class LtProducts : public Products {
 public:
  // `tf32`: float32 factors may be rounded to TF32.
  // Shapes that `kept` has from an earlier run aren't timed again.
  LtProducts(const DeviceKernels& kernels, lt::Library library, bool tf32, KeptChoices kept);
  ~LtProducts() override;

  at::Tensor forward(const at::Tensor& x, const LayerTensors& layer) override;
  Activated forward_gelu(const at::Tensor& x, const LayerTensors& layer) override;
  at::Tensor input_gradient(const at::Tensor& d, const at::Tensor& weight) override;
  GeluGradients gelu_gradient(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& pre,
                              const LayerTensors& layer) override;
  WeightGradients weight_gradient(const at::Tensor& d, const at::Tensor& x, bool wants_bias) override;

  // "4096 x 768 x 3072, TN, gelu, bf16 to bf16: 0.412 ms, number 3 of 8"
  std::vector<std::string> choices() const override;

 private:
  struct Call;
  struct Plan;
  using Apart = std::function<void()>;  // does by a plain product and kernels what a call's epilogue does
  Activated forward_gelu_apart(const at::Tensor& x, const LayerTensors& layer);
  GeluGradients gelu_gradient_apart(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& pre,
                                    const LayerTensors& layer);
  bool run(const Call& call, const Apart& apart = {});
  Plan& plan_of(const Call& call);
  std::string key_of(const Call& call) const;
  int offered(const Plan& plan, const Call& call, std::span<lt::Heuristic> algorithms);
  double least_ms(const std::function<void()>& work) const;
  void choose(Plan& plan, const Call& call, const Apart& apart);
  bool take(Plan& plan, const Call& call, const std::string& key);
  bool start(Plan& plan, const Call& call, const lt::Heuristic& algorithm);
  at::Tensor workspace(const at::Tensor& near);

  const lt::Library library_;
  const bool tf32_;
  KeptChoices kept_;
  std::vector<std::unique_ptr<Plan>> plans_;  // a dozen
  at::Tensor workspace_;
};

}  // namespace stepladder
