// The one place that knows all ways to take a step, and which of them a recipe gets on a device.
#include "engine/trainer/step/make_step.h"

#include <chrono>

#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/device/kernel_module.h"
#include "engine/trainer/device/lt_products.h"
#include "engine/trainer/step/captured_step.h"
#include "engine/trainer/step/device_step.h"
#include "engine/trainer/step/planned_step.h"

namespace stepladder {

std::unique_ptr<Step> make_step(const StepContext& context, const std::string& machine, const StepMakers& makers) {
  const Recipe& recipe = context.recipe;
  const auto began = std::chrono::steady_clock::now();
  if (recipe.compile == Compile::max) {
    if (DeviceModel::Device device = makers.device(recipe); device.launcher) {
      auto model = std::make_unique<DeviceModel>(recipe, context.model, std::move(device));
      return std::make_unique<CapturedStep>(context, std::make_unique<DeviceStep>(context, std::move(model)),
                                            makers.graph, began);
    }
  }
  std::unique_ptr<AdamW> optimizer = make_optimizer(recipe, named_parameters(context.model));
  if (recipe.compile == Compile::max && context.device.is_cpu())
    return std::make_unique<PlannedStep>(context, std::move(optimizer), machine);
  auto step = std::make_unique<AutogradStep>(context, std::move(optimizer));
  if (recipe.compile == Compile::off) return step;
  return std::make_unique<CapturedStep>(context, std::move(step), makers.graph);
}

std::unique_ptr<StepGraph> make_step_graph(at::Device device) {
  const CudaParts* const parts = device.is_cuda() ? cuda_library().parts : nullptr;
  return parts ? parts->make_step_graph() : nullptr;
}

// Its kernels are compiled for the first GPU, or another of the same kind.
DeviceModel::Device make_step_device(const Recipe& recipe) {
  const CudaParts* const parts = recipe.device == "cuda" ? cuda_library().parts : nullptr;
  if (!parts) return {};
  const Gpu& gpu = cuda_library().gpus.front();
  const std::string module = kernel_module({.compute_major = gpu.compute_major,
                                            .compute_minor = gpu.compute_minor,
                                            .half = recipe.autocast == Autocast::bf16,
                                            .width = recipe.d_model,
                                            .vocab = recipe.vocab,
                                            .padded_vocab = head_rows(recipe)});
  const bool tf32 = recipe.matmul == MatmulPrecision::tf32;
  return {.launcher = parts->make_launcher(module), .make_products = [parts, tf32](const DeviceKernels& kernels) {
            lt::Library library = parts->lt_library();
            KeptChoices kept(kept_choices_file(library.machine));
            return std::make_unique<LtProducts>(kernels, std::move(library), tf32, std::move(kept));
          }};
}

}  // namespace stepladder
