// Finds the GPUs by the driver alone, then opens LibTorch's CUDA half and our libstepladder_trainer_cuda.so. A missing
// part becomes a note for `doctor` and the stages, not an error. It must run before any tensor is made, and nothing is
// ever closed.
#include "engine/trainer/cuda_library.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <array>
#include <filesystem>

#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/device/nvidia_wheels.h"

namespace stepladder {
namespace {

// The few functions of NVIDIA's driver interface that are needed (CUDA Driver API, "Device Management").
class Driver {
 public:
  Driver() : handle_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  bool found() const { return handle_ != nullptr; }

  int init() const { return call<int(unsigned)>("cuInit", 0u); }
  int count() const {
    int devices = 0;
    return call<int(int*)>("cuDeviceGetCount", &devices) == 0 ? devices : 0;
  }
  Gpu describe(int number) const {
    int device = 0;
    call<int(int*, int)>("cuDeviceGet", &device, number);
    std::array<char, 256> name{};
    call<int(char*, int, int)>("cuDeviceGetName", name.data(), static_cast<int>(name.size()) - 1, device);
    std::size_t bytes = 0;
    call<int(std::size_t*, int)>("cuDeviceTotalMem_v2", &bytes, device);
    Gpu gpu{.name = name.data(), .memory_bytes = static_cast<std::int64_t>(bytes)};
    constexpr int compute_capability_major = 75, compute_capability_minor = 76;  // of CUdevice_attribute
    call<int(int*, int, int)>("cuDeviceGetAttribute", &gpu.compute_major, compute_capability_major, device);
    call<int(int*, int, int)>("cuDeviceGetAttribute", &gpu.compute_minor, compute_capability_minor, device);
    return gpu;
  }

 private:
  // -1 if the driver lacks a function of that name.
  template <class Function, class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    return function ? function(arguments...) : -1;
  }

  void* handle_;  // never closed: LibTorch keeps using the driver
};

// The folder of the library or program that holds this function.
std::filesystem::path folder_of(void* function) {
  Dl_info holder{};
  return ::dladdr(function, &holder) == 0 ? "" : std::filesystem::path(holder.dli_fname).parent_path();
}

std::string last_error(const std::filesystem::path& file) {
  const char* why = ::dlerror();
  return why ? why : file.string();
}

// NVRTC, with which cuDNN and the kernels of engine/kernels are compiled, opens its second half by name only. The
// loader finds that in a system's cache of libraries, but not in a wheel's folder unless it is open already.
void open_nvrtc_builtins(int cuda_major) {
  const auto file = nvidia_library(torch_library_folder(), "libnvrtc-builtins.so.", cuda_major);
  if (!file.empty()) ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void open_parts(CudaLibrary& library) {
  const auto file = folder_of(reinterpret_cast<void*>(&cuda_library)) / "libstepladder_trainer_cuda.so";
  if (!std::filesystem::exists(file)) {
    library.parts_note = "this build has no libstepladder_trainer_cuda: CUDA's headers were missing";
    return;
  }
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = handle ? ::dlsym(handle, cuda_parts_symbol) : nullptr;
  if (entry) {
    library.parts = reinterpret_cast<CudaPartsEntry>(entry)();
  } else {
    library.parts_note = "libstepladder_trainer_cuda could not be loaded: " + last_error(file);
  }
}

CudaLibrary open_cuda_library() {
  const Driver driver;
  if (!driver.found()) return {{}, "no NVIDIA driver"};
  if (const int error = driver.init(); error != 0) {
    return {{}, "the NVIDIA driver cannot be used (cuInit returned " + std::to_string(error) + ")"};
  }
  const int count = driver.count();
  if (count == 0) return {{}, "the NVIDIA driver finds no GPU"};

  const auto file = torch_library_folder() / "libtorch_cuda.so";
  if (!std::filesystem::exists(file)) return {{}, "this LibTorch was built without CUDA"};
  if (!::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    return {{}, "LibTorch's CUDA half could not be loaded: " + last_error(file)};
  }
  if (!at::detail::getCUDAHooks().hasCUDA())
    return {{}, "LibTorch finds no usable GPU (the driver may be older than its CUDA)"};

  const std::int64_t runtime = at::detail::getCUDAHooks().versionCUDART();
  CudaLibrary library{.runtime_major = static_cast<int>(runtime / 1000)};
  open_nvrtc_builtins(library.runtime_major);
  for (int number = 0; number < count; ++number) library.gpus.push_back(driver.describe(number));
  // Runs use the first GPU.
  if (const auto why = too_old(library.gpus.front(), runtime); !why.empty()) return {{}, why};
  open_parts(library);
  return library;
}

}  // namespace

std::string too_old(const Gpu& gpu, std::int64_t cuda_version) {
  constexpr std::int64_t without_volta = 13'000;  // CUDA 13 compiles for Turing and newer
  const bool turing = gpu.compute_major > 7 || (gpu.compute_major == 7 && gpu.compute_minor >= 5);
  if (turing || cuda_version < without_volta) return "";
  return gpu.name + " has compute capability " + std::to_string(gpu.compute_major) + "." +
         std::to_string(gpu.compute_minor) + ", and LibTorch's CUDA " + std::to_string(cuda_version / 1000) +
         " has no kernels below 7.5 (Turing); with several GPUs, CUDA_VISIBLE_DEVICES chooses another";
}

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = open_cuda_library();
  return library;
}

}  // namespace stepladder
