#include "engine/trainer/device/nvidia_wheels.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <string>
#include <system_error>
#include <utility>

namespace stepladder {

std::filesystem::path torch_library_folder() {
  Dl_info holder{};
  return ::dladdr(reinterpret_cast<void*>(&at::globalContext), &holder) == 0
             ? std::filesystem::path()
             : std::filesystem::path(holder.dli_fname).parent_path();
}

std::filesystem::path nvidia_library(const std::filesystem::path& torch_libraries, std::string_view prefix, int major) {
  namespace fs = std::filesystem;
  const std::string wanted = std::string(prefix) + std::to_string(major);
  const auto rank = [&](const fs::path& file) {
    const std::string name = file.filename().string();
    return std::pair(name == wanted || name.starts_with(wanted + "."), name);
  };
  fs::path newest;
  std::error_code error;
  for (const fs::directory_entry& wheel : fs::directory_iterator(torch_libraries / ".." / ".." / "nvidia", error)) {
    for (const fs::directory_entry& file : fs::directory_iterator(wheel.path() / "lib", error)) {
      // "libnvrtc-builtins.alt.so.13.0" doesn't begin with "libnvrtc-builtins.so.".
      if (!file.path().filename().string().starts_with(prefix)) continue;
      if (newest.empty() || rank(newest) < rank(file.path())) newest = file.path();
    }
  }
  return newest.empty() ? newest : newest.lexically_normal();
}

}  // namespace stepladder
