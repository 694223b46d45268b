// The kernels of engine/kernels as machine code for one card: compiled by NVRTC where they run, with the shapes as
// constants, and kept in the cache folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace stepladder {

// The text of engine/kernels, which is part of the program (CMakeLists.txt writes it into build/generated).
struct KernelSource {
  const char* path;  // from the root, as the sources include each other
  const char* text;
};
std::span<const KernelSource> kernel_sources();

// The GPU and shapes that a module is compiled for. A shape of 0 stays an argument of the kernels.
struct KernelTarget {
  int compute_major = 0, compute_minor = 0;
  bool half = false;
  std::int64_t width = 0, vocab = 0, padded_vocab = 0;
};

struct CompiledModule {
  std::string cubin;
  std::string log;  // NVRTC's, with registers and spills of each kernel
};

// The reason why NVRTC cannot be used; empty if it can. Opens it at the first call.
const std::string& nvrtc_note();
// Throws std::runtime_error with NVRTC's message.
CompiledModule compile_kernels(const KernelTarget& target);

std::filesystem::path kernel_cache_folder();  // $XDG_CACHE_HOME/stepladder/kernels

// The module from the cache in `folder`, or compiled and put there. An entry counts only if it was made from these
// sources by this NVRTC for this target, and is whole; a folder that cannot be written costs the time, nothing else.
std::string kernel_module(const KernelTarget& target, const std::filesystem::path& folder = kernel_cache_folder());

// The cache of kernel_module by itself: returns the entry of `key`, or makes it. `key` names everything that the bytes
// depend on.
std::string cached(const std::filesystem::path& folder, const std::string& key,
                   const std::function<std::string()>& make);

}  // namespace stepladder
