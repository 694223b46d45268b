// Compiles engine/kernels with NVRTC, which is looked up at run time, and caches the machine code. The cache key covers
// the NVRTC version, all sources and all options; anything else that changes the code must become part of the key.
#include "engine/trainer/device/kernel_module.h"

#include <dlfcn.h>

#include <fstream>
#include <stdexcept>
#include <vector>

#include "engine/trainer/cache/cache_files.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/device/nvidia_wheels.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// NVIDIA's run-time compiler, from the wheel beside LibTorch or from the system. Functions as in nvrtc.h.
class Nvrtc {
 public:
  using Program = void*;

  Nvrtc() {
    const fs::path wheels = torch_library_folder();
    const int major = cuda_library().runtime_major;
    // Opened by its path first: NVRTC opens it by name only.
    if (const fs::path builtins = nvidia_library(wheels, "libnvrtc-builtins.so.", major); !builtins.empty())
      ::dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::vector<std::string> names{nvidia_library(wheels, "libnvrtc.so.", major).string()};
    if (major > 0) names.push_back("libnvrtc.so." + std::to_string(major));
    names.insert(names.end(), {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
    for (const std::string& name : names) {
      if (!name.empty() && (handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
    }
    if (!handle_) {
      note = "NVRTC, NVIDIA's run-time compiler, was not found (the wheel nvidia-cuda-nvrtc has it)";
    } else if (!find(version, "nvrtcVersion") || !find(create, "nvrtcCreateProgram") ||
               !find(compile, "nvrtcCompileProgram") || !find(destroy, "nvrtcDestroyProgram") ||
               !find(log_size, "nvrtcGetProgramLogSize") || !find(log, "nvrtcGetProgramLog") ||
               !find(cubin_size, "nvrtcGetCUBINSize") || !find(cubin, "nvrtcGetCUBIN")) {
      note = "this NVRTC is too old: it lacks a function";
    }
  }

  std::string note;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;

 private:
  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    return function != nullptr;
  }
  void* handle_ = nullptr;  // never closed: modules may be compiled at any time
};

const Nvrtc& nvrtc() {
  static const Nvrtc library;
  return library;
}

std::vector<std::string> options_for(const KernelTarget& target) {
  return {"--gpu-architecture=sm_" + std::to_string(target.compute_major) + std::to_string(target.compute_minor),
          "--std=c++17",
          "--ptxas-options=--verbose",
          "-DHALF=" + std::to_string(target.half ? 1 : 0),
          "-DFIXED_WIDTH=" + std::to_string(target.width),
          "-DFIXED_VOCAB=" + std::to_string(target.vocab),
          "-DFIXED_PADDED_VOCAB=" + std::to_string(target.padded_vocab)};
}

std::string all_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// An entry's first line; its key is the second, so neither may have line breaks.
std::string head_of(const std::string& key, const std::string& bytes) {
  return "stepladder kernels " + std::to_string(bytes.size()) + " " + cache_checksum(bytes) + "\n" + key + "\n";
}

}  // namespace

const std::string& nvrtc_note() {
  return nvrtc().note;
}

CompiledModule compile_kernels(const KernelTarget& target) {
  const Nvrtc& compiler = nvrtc();
  if (!compiler.note.empty()) throw std::runtime_error(compiler.note);
  std::string text;
  std::vector<const char*> paths, texts, options;
  for (const KernelSource& source : kernel_sources()) {
    paths.push_back(source.path);
    texts.push_back(source.text);
    if (std::string_view(source.path).ends_with(".cu")) text += "#include \"" + std::string(source.path) + "\"\n";
  }
  const std::vector<std::string> wanted = options_for(target);
  for (const std::string& option : wanted) options.push_back(option.c_str());
  Nvrtc::Program program = nullptr;
  if (compiler.create(&program, text.c_str(), "kernels.cu", static_cast<int>(paths.size()), texts.data(),
                      paths.data()) != 0)
    throw std::runtime_error("NVRTC cannot begin to compile the kernels");
  const int error = compiler.compile(program, static_cast<int>(options.size()), options.data());
  CompiledModule module;
  const auto read = [&](auto size_of, auto bytes_of, std::string& to) {
    std::size_t size = 0;
    if (size_of(program, &size) != 0) return;
    to.resize(size);
    if (bytes_of(program, to.data()) != 0) to.clear();
  };
  read(compiler.log_size, compiler.log, module.log);
  while (module.log.ends_with('\0')) module.log.pop_back();
  if (error == 0) read(compiler.cubin_size, compiler.cubin, module.cubin);
  compiler.destroy(&program);
  if (module.cubin.empty()) throw std::runtime_error("NVRTC cannot compile the kernels: " + module.log);
  return module;
}

fs::path kernel_cache_folder() {
  const fs::path folder = cache_folder();
  return folder.empty() ? folder : folder / "kernels";
}

std::string cached(const fs::path& folder, const std::string& key, const std::function<std::string()>& make) {
  if (folder.empty()) return make();
  const fs::path file = folder / (cache_checksum(key) + ".cubin");
  if (const std::string entry = all_of(file); !entry.empty()) {
    const auto first = entry.find('\n');
    const auto second = first == std::string::npos ? first : entry.find('\n', first + 1);
    if (second != std::string::npos) {
      std::string bytes = entry.substr(second + 1);
      if (entry.compare(0, second + 1, head_of(key, bytes)) == 0) return bytes;
    }
  }
  std::string bytes = make();
  write_cache_file(file, head_of(key, bytes) + bytes);
  return bytes;
}

std::string kernel_module(const KernelTarget& target, const fs::path& folder) {
  if (!nvrtc_note().empty()) throw std::runtime_error(nvrtc_note());
  int major = 0, minor = 0;
  nvrtc().version(&major, &minor);
  std::string sources;
  for (const KernelSource& source : kernel_sources()) sources += source.text;
  std::string key = "nvrtc " + std::to_string(major) + "." + std::to_string(minor) + " " + cache_checksum(sources);
  for (const std::string& option : options_for(target)) key += " " + option;
  return cached(folder, key, [&] { return compile_kernels(target).cubin; });
}

}  // namespace stepladder
