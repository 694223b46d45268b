#include "engine/trainer/device/kernel_adamw.h"

#include <gtest/gtest.h>

#include "engine/kernels/adamw_slots.h"
#include "tests/trainer/device/kernels_on_cpu.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

// More tensors than one launch takes, and one of several chunks.
NamedTensors parameters() {
  torch::manual_seed(4);
  NamedTensors all;
  for (int i = 0; i < adamw_slots + 5; ++i) {
    const std::int64_t size = i == 7 ? 2 * adamw_chunk + 5 : 1 + 13 * i % 50;
    all.emplace_back("p" + std::to_string(i), i % 2 == 0 ? at::randn({size}) : at::randn({size, 1}));
  }
  return all;
}

void set_gradients(const NamedTensors& all, int step) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    torch::manual_seed(static_cast<std::uint64_t>(100 * step) + i);
    at::Tensor(all[i].second).mutable_grad() = at::randn(all[i].second.sizes());
  }
}

TEST(KernelAdamW, UpdatesAsTheOtherTwo) {
  KernelsOnCpu launcher(true);
  const DeviceKernels kernels(launcher, true);
  for (const double clip : {0.0, 1.0}) {
    Recipe recipe = tiny_recipe();
    recipe.decay = Decay::matrices;
    recipe.weight_decay = 0.1;
    const NamedTensors plain = parameters(), own = parameters();
    Copies copies;
    for (const auto& [name, tensor] : own)
      copies[tensor.unsafeGetTensorImpl()] = at::zeros(tensor.sizes(), at::kBFloat16);
    const auto reference = make_optimizer(recipe, plain);
    const auto optimizer = make_kernel_adamw(recipe, own, kernels, copies);
    optimizer->prepare_replay();
    for (int step = 1; step <= 2; ++step) {
      for (const auto& [all, each] : {std::pair(&plain, reference.get()), {&own, optimizer.get()}}) {
        set_gradients(*all, step);
        each->begin_step(1e-2 / step);
        if (clip > 0) {
          EXPECT_NEAR(each->clip_gradients(clip).item<double>(), std::sqrt(17'700.0), 4) << step;
        }
        each->update();
      }
    }
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(at::allclose(own[i].second, plain[i].second, 1e-5, 1e-6)) << own[i].first << " clip " << clip;
      EXPECT_TRUE(at::equal(copies[own[i].second.unsafeGetTensorImpl()], own[i].second.to(at::kBFloat16)));
    }
  }
}

TEST(KernelAdamW, ANormThatIsNotANumberStaysNone) {
  KernelsOnCpu launcher(false);
  const DeviceKernels kernels(launcher, false);
  const NamedTensors own = parameters();
  const auto optimizer = make_kernel_adamw(tiny_recipe(), own, kernels, {});
  set_gradients(own, 1);
  own[3].second.mutable_grad().fill_(std::nan(""));
  optimizer->begin_step(1e-3);
  EXPECT_TRUE(std::isnan(optimizer->clip_gradients(1).item<double>()));
  optimizer->update();
  EXPECT_TRUE(std::isnan(own[0].second[0].item<double>()));  // as in the plain way
}

}  // namespace
}  // namespace stepladder
