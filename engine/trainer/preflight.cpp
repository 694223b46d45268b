#include "engine/trainer/preflight.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/stage.h"
#include "engine/trainer/parallel/data_parallel.h"
#include "engine/trainer/settings.h"

namespace stepladder {
namespace {

// Float32 weight, gradient and two moments, and a planned step's packed copy of each weight (a
// small model has two, which hardly matters).
std::int64_t bytes_per_parameter(const Recipe& recipe) {
  if (recipe.compile != Compile::max) return 16;
  return recipe.autocast == Autocast::bf16 ? 18 : 20;
}

// Returns LibTorch's cached memory of earlier runs first, so that it counts as free.
std::int64_t free_gpu_bytes() {
  at::globalContext().lazyInitDevice(at::kCUDA);
  c10::DeviceAllocator* const memory = at::getDeviceAllocator(at::kCUDA);
  memory->emptyCache();
  return static_cast<std::int64_t>(memory->getMemoryInfo(0).first);
}

}  // namespace

Recipe resolve(Recipe recipe, const DeviceReport& report) {
  recipe.device = report.resolve(recipe.device);
  require_device(recipe, report);
  if (recipe.threads == 0) recipe.threads = std::min(default_threads(), report.cpu_cores);
  recipe.threads = threads_per_process(recipe) * recipe.nproc;
  return recipe;
}

void require_memory(const Recipe& recipe) {
  const std::int64_t needed = parameter_count(recipe) * bytes_per_parameter(recipe);
  const std::int64_t free = recipe.device == "cuda" ? free_gpu_bytes() : available_memory_bytes();
  if (free <= 0 || needed <= free) return;
  const auto gigabytes = [](std::int64_t bytes) {
    const std::int64_t tenths = (bytes + 50'000'000) / 100'000'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
  };
  throw std::runtime_error("out of memory: weights, gradients and moments of " +
                           std::to_string(parameter_count(recipe)) + " parameters take " + gigabytes(needed) +
                           ", but " + gigabytes(free) + " are free");
}

}  // namespace stepladder
