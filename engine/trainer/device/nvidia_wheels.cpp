#include "engine/trainer/device/nvidia_wheels.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <system_error>

namespace stepladder {

std::filesystem::path torch_library_folder() {
  Dl_info holder{};
  return ::dladdr(reinterpret_cast<void*>(&at::globalContext), &holder) == 0
             ? std::filesystem::path()
             : std::filesystem::path(holder.dli_fname).parent_path();
}

std::filesystem::path nvidia_library(const std::filesystem::path& torch_libraries, std::string_view prefix) {
  namespace fs = std::filesystem;
  fs::path newest;
  std::error_code error;
  for (const fs::directory_entry& wheel : fs::directory_iterator(torch_libraries / ".." / ".." / "nvidia", error)) {
    for (const fs::directory_entry& file : fs::directory_iterator(wheel.path() / "lib", error)) {
      // "libnvrtc-builtins.alt.so.13.0" doesn't begin with "libnvrtc-builtins.so.".
      if (!file.path().filename().string().starts_with(prefix)) continue;
      if (newest.empty() || newest.filename() < file.path().filename()) newest = file.path();
    }
  }
  return newest.empty() ? newest : newest.lexically_normal();
}

}  // namespace stepladder
