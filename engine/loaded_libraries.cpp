// Asks the loader which files are mapped, and each library for its version. Nothing is loaded for it.
#include "engine/loaded_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <string_view>
#include <system_error>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

using Version = std::string (*)(void* library);

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// 13'010 as CUDA numbers itself: 1'000 x major + 10 x minor.
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// 91'900: major, two digits of minor, two of patch. cuDNN had one digit less before its ninth major.
std::string three_parts(std::size_t number) {
  const std::size_t major = number < 10'000 ? 1'000 : 10'000;
  return std::to_string(number / major) + "." + std::to_string(number % major / 100) + "." +
         std::to_string(number % 100);
}

std::string of_number(void* library, const char* name) {
  int number = 0;
  const auto ask = find<int(int*)>(library, name);
  return ask && ask(&number) == 0 && number > 0 ? cuda_version(number) : "";
}

std::string of_size(void* library, const char* name) {
  const auto ask = find<std::size_t()>(library, name);
  return ask ? three_parts(ask()) : "";
}

std::string of_nvrtc(void* library) {
  int major = 0, minor = 0;
  const auto ask = find<int(int*, int*)>(library, "nvrtcVersion");
  return ask && ask(&major, &minor) == 0 ? std::to_string(major) + "." + std::to_string(minor) : "";
}

std::string of_nccl(void* library) {
  int number = 0;
  const auto ask = find<int(int*)>(library, "ncclGetVersion");
  return ask && ask(&number) == 0 ? three_parts(static_cast<std::size_t>(number)) : "";
}

// The driver's own number, "580.159.04".
std::string of_nvml(void* library) {
  const auto begin = find<int()>(library, "nvmlInit_v2"), end = find<int()>(library, "nvmlShutdown");
  const auto ask = find<int(char*, unsigned)>(library, "nvmlSystemGetDriverVersion");
  if (!begin || !end || !ask || begin() != 0) return "";
  std::array<char, 96> text{};
  const bool known = ask(text.data(), static_cast<unsigned>(text.size()) - 1) == 0;
  end();
  return known ? text.data() : "";
}

struct Known {
  const char* name;
  std::string_view prefix;  // of the file's name
  Version version;
};
constexpr std::string_view libtorch = "libtorch_cpu.so";
constexpr std::array known_libraries{
    Known{"LibTorch", libtorch, [](void*) { return std::string(); }},
    Known{"driver (CUDA that it offers)", "libcuda.so.", [](void* l) { return of_number(l, "cuDriverGetVersion"); }},
    Known{"NVML (driver)", "libnvidia-ml.so.", of_nvml},
    Known{"CUDA runtime", "libcudart.so.", [](void* l) { return of_number(l, "cudaRuntimeGetVersion"); }},
    Known{"cuBLASLt", "libcublasLt.so.", [](void* l) { return of_size(l, "cublasLtGetVersion"); }},
    Known{"cuDNN", "libcudnn.so.", [](void* l) { return of_size(l, "cudnnGetVersion"); }},
    Known{"NVRTC", "libnvrtc.so.", of_nvrtc},
    Known{"NVRTC builtins", "libnvrtc-builtins.so.", [](void*) { return std::string(); }},
    Known{"CUPTI", "libcupti.so.", [](void*) { return std::string(); }},
    Known{"NCCL", "libnccl.so.", of_nccl}};

std::vector<fs::path> mapped_files() {
  std::vector<fs::path> files;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* all) {
        if (info->dlpi_name && info->dlpi_name[0] == '/')
          static_cast<std::vector<fs::path>*>(all)->emplace_back(info->dlpi_name);
        return 0;
      },
      &files);
  return files;
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  const fs::path way = file.lexically_relative(folder);
  return !way.empty() && *way.begin() != "..";
}

// "libcudnn.so" of "libcudnn.so.9.19".
std::string stem_of(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.substr(0, name.find(".so") + 3);
}

}  // namespace

std::string origin_of(const fs::path& file, const fs::path& site) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(file, error);
  if (!site.empty() && is_inside(real, fs::weakly_canonical(site, error))) return "wheel";
  for (const char* folder : {"/usr/lib", "/usr/lib64", "/lib", "/lib64"})
    if (is_inside(real, fs::weakly_canonical(folder, error))) return "system";
  return "elsewhere";
}

bool shadows_wheel(const fs::path& file, const fs::path& site) {
  std::error_code error;
  const fs::path root = fs::weakly_canonical(site, error);
  if (site.empty() || origin_of(file, site) == "wheel") return false;
  const std::string stem = stem_of(file);
  const auto has_one = [&](const fs::path& folder) {
    for (const fs::directory_entry& each : fs::directory_iterator(folder, error))
      if (stem_of(each.path()) == stem) return true;
    return false;
  };
  if (has_one(root / "torch" / "lib")) return true;
  for (const fs::directory_entry& wheel : fs::directory_iterator(root / "nvidia", error))
    if (has_one(wheel.path() / "lib")) return true;
  return false;
}

std::vector<LoadedLibrary> loaded_libraries() {
  const std::vector<fs::path> files = mapped_files();
  std::vector<LoadedLibrary> loaded;
  fs::path site;
  for (const Known& known : known_libraries) {
    for (const fs::path& file : files) {
      if (!file.filename().string().starts_with(known.prefix)) continue;
      if (known.prefix == libtorch) site = file.parent_path().parent_path().parent_path();
      void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
      loaded.push_back({.name = known.name,
                        .file = file,
                        .version = library ? known.version(library) : "",
                        .origin = origin_of(file, site),
                        .shadows = shadows_wheel(file, site)});
      if (library) ::dlclose(library);
    }
  }
  return loaded;
}

std::string shadow_note(const std::vector<LoadedLibrary>& libraries) {
  std::string names;
  for (const LoadedLibrary& library : libraries)
    if (library.shadows) names += (names.empty() ? "" : ", ") + library.name + " by " + library.file.string();
  return names.empty() ? ""
                       : "LibTorch's own libraries are hidden (" + names +
                             "), usually by LD_LIBRARY_PATH: other versions may be slower or fail. Unset it to use "
                             "those of the wheel.";
}

}  // namespace stepladder
