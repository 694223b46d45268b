// Loads a compiled module of engine/kernels and launches its kernels through the driver's own interface, which is
// looked up at run time so that nothing links libcuda. Launches go to LibTorch's current stream and can be captured in
// a graph.
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "engine/trainer/cuda/make_parts.h"

namespace stepladder {
namespace {

// The functions of NVIDIA's driver interface that start kernels, of the library that LibTorch has loaded.
struct Driver {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed
  template <class Function>
  Function* find(const char* name) const {
    void* const found = library ? ::dlsym(library, name) : nullptr;
    if (!found) throw std::runtime_error(std::string("the NVIDIA driver has no ") + name);
    return reinterpret_cast<Function*>(found);
  }
  decltype(&::cuModuleLoadData) load = find<decltype(::cuModuleLoadData)>("cuModuleLoadData");
  decltype(&::cuModuleUnload) unload = find<decltype(::cuModuleUnload)>("cuModuleUnload");
  decltype(&::cuModuleGetFunction) function = find<decltype(::cuModuleGetFunction)>("cuModuleGetFunction");
  decltype(&::cuFuncSetAttribute) set_attribute = find<decltype(::cuFuncSetAttribute)>("cuFuncSetAttribute");
  decltype(&::cuLaunchKernel) launch = find<decltype(::cuLaunchKernel)>("cuLaunchKernel");
  decltype(&::cuCtxGetCurrent) context = find<decltype(::cuCtxGetCurrent)>("cuCtxGetCurrent");
  decltype(&::cuCtxSetCurrent) set_context = find<decltype(::cuCtxSetCurrent)>("cuCtxSetCurrent");
  decltype(&::cuGetErrorString) error_string = find<decltype(::cuGetErrorString)>("cuGetErrorString");

  void check(CUresult result, const std::string& what) const {
    if (result == CUDA_SUCCESS) return;
    const char* why = nullptr;
    error_string(result, &why);
    throw std::runtime_error(what + ": " + (why ? why : "CUDA error " + std::to_string(result)));
  }
};

// Kernels declare some shared memory themselves: classifier.cu 256 bytes.
constexpr std::int64_t declared_shared_bytes = 512;

class CudaLauncher : public KernelLauncher {
 public:
  explicit CudaLauncher(const std::string& cubin) {
    c10::cuda::device_synchronize();  // LibTorch's context is this thread's current one from here on
    driver_.check(driver_.context(&context_), "the GPU has no context");
    const cudaDeviceProp& card = *at::cuda::getCurrentDeviceProperties();
    processors_ = card.multiProcessorCount;
    shared_bytes_ = static_cast<std::int64_t>(card.sharedMemPerBlockOptin) - declared_shared_bytes;
    driver_.check(driver_.load(&module_, cubin.data()), "the kernels cannot be loaded");
  }
  // Every graph that was captured with its kernels must be gone.
  ~CudaLauncher() override { driver_.unload(module_); }
  CudaLauncher(const CudaLauncher&) = delete;
  CudaLauncher& operator=(const CudaLauncher&) = delete;

  void launch(const char* kernel, const LaunchShape& shape, std::span<const Argument> arguments) override {
    // Backward passes run on a thread of autograd's, which may not have met this context yet.
    CUcontext current = nullptr;
    if (driver_.context(&current) == CUDA_SUCCESS && current != context_) {
      driver_.check(driver_.set_context(context_), "the GPU's context cannot be used");
    }
    std::vector<void*> values;
    values.reserve(arguments.size());
    for (const Argument& argument : arguments) values.push_back(const_cast<void*>(argument.value));
    driver_.check(driver_.launch(function(kernel, shape.shared_bytes), static_cast<unsigned>(shape.blocks),
                                 static_cast<unsigned>(shape.slices), 1, static_cast<unsigned>(shape.threads), 1, 1,
                                 static_cast<unsigned>(shape.shared_bytes), c10::cuda::getCurrentCUDAStream().stream(),
                                 values.data(), nullptr),
                  std::string("the kernel ") + kernel + " cannot be started");
  }

  int processors() const override { return processors_; }
  std::int64_t shared_bytes() const override { return shared_bytes_; }

 private:
  struct Loaded {
    CUfunction function = nullptr;
    std::int64_t shared_bytes = 0;  // that a launch may ask for
  };

  CUfunction function(const std::string& kernel, std::int64_t shared_bytes) {
    Loaded& loaded = functions_[kernel];
    if (!loaded.function)
      driver_.check(driver_.function(&loaded.function, module_, kernel.c_str()), "there is no kernel " + kernel);
    if (shared_bytes > loaded.shared_bytes) {
      driver_.check(driver_.set_attribute(loaded.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          static_cast<int>(shared_bytes)),
                    "the kernel " + kernel + " cannot have its shared memory");
      loaded.shared_bytes = shared_bytes;
    }
    return loaded.function;
  }

  const Driver driver_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::map<std::string, Loaded> functions_;
  int processors_ = 0;
  std::int64_t shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<KernelLauncher> make_cuda_launcher(const std::string& cubin) {
  return std::make_unique<CudaLauncher>(cubin);
}

}  // namespace stepladder
