#pragma once

#include <memory>
#include <string>

#include "engine/trainer/device/kernel_launcher.h"

namespace stepladder {

// As CudaParts::make_launcher.
std::unique_ptr<KernelLauncher> make_cuda_launcher(const std::string& cubin);

}  // namespace stepladder
