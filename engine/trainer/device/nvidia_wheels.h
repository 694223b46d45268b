// NVIDIA's libraries as Python wheels install them, in folders beside LibTorch's: torch/lib, nvidia/cu13/lib.
#pragma once

#include <filesystem>
#include <string_view>

namespace stepladder {

// The folder of LibTorch's libraries in this process.
std::filesystem::path torch_library_folder();

// A file of the wheels beside that folder whose name begins with `prefix` ("libnvrtc.so."): the newest of CUDA's
// version `major`, else (also for 0) the newest of all; empty if there is none.
std::filesystem::path nvidia_library(const std::filesystem::path& torch_libraries, std::string_view prefix, int major);

}  // namespace stepladder
