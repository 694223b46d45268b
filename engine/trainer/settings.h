// LibTorch's settings per process or per thread, set for the duration of a run or of a forward pass.
#pragma once

#include <torch/torch.h>

#include "engine/recipe.h"

namespace stepladder {

// This process's share of the threads and the precision of float32 products; the destructor restores both.
class RunSettings {
 public:
  explicit RunSettings(const Recipe& recipe);
  ~RunSettings();
  RunSettings(const RunSettings&) = delete;
  RunSettings& operator=(const RunSettings&) = delete;

 private:
  int threads_before_;
};

// Python's `with torch.autocast(device, torch.bfloat16)`; does nothing if the recipe has autocast off. At its end it
// drops the 16-bit copies of the weights, since the update makes them stale.
class AutocastScope {
 public:
  AutocastScope(Autocast autocast, at::DeviceType device);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool on_;
  at::DeviceType device_;
  at::ScalarType dtype_before_{};
};

// The type in which products with `x` run under the CPU's current autocast.
at::ScalarType product_type(const at::Tensor& x);

// LibTorch's own choice, one per physical core, read before anything changes it.
int default_threads();

}  // namespace stepladder
