#include "engine/open_trainer.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// Empty where the system doesn't say.
fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// STEPLADDER_TRAINER_LIBRARY, else the library beside the running program.
std::string trainer_library_file() {
  if (const char* named = std::getenv("STEPLADDER_TRAINER_LIBRARY"); named && *named) return named;
#ifdef __APPLE__
  const char* name = "libstepladder_trainer.dylib";
#else
  const char* name = "libstepladder_trainer.so";
#endif
  return (program_folder() / name).string();
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream text(file);
  std::getline(text, line);
  return line;
}

const std::string torch_to_install = std::string("pip install torch==") + STEPLADDER_TORCH_VERSION;

// The wheel's command sets STEPLADDER_TORCH to the folder of the Python package torch. LibTorch's versions are not
// compatible with each other: the trainer would crash with another one.
void load_torch_of_python() {
  const char* folder = std::getenv("STEPLADDER_TORCH");
  if (!folder || !*folder) return;
  std::ifstream text(fs::path(folder) / "version.py");
  const std::string_view begin = "__version__ = '";
  for (std::string line; std::getline(text, line);) {
    if (line.rfind(begin, 0) != 0) continue;
    const std::string version = line.substr(begin.size(), line.find_first_of("'+", begin.size()) - begin.size());
    if (version != STEPLADDER_TORCH_VERSION)
      throw std::runtime_error("this Stepladder trains with torch " STEPLADDER_TORCH_VERSION ", but torch " + version +
                               " is installed: " + torch_to_install);
  }
  // The trainer finds it by name then, wherever it is. If it isn't there, opening the trainer says so.
  ::dlopen((fs::path(folder) / "lib" / "libtorch_cpu.so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

// Opens the library; throws std::runtime_error with a sentence. Never closes it, since LibTorch's threads and statics
// would crash.
const TrainerLibrary* open_trainer_library() {
  const std::string file = trainer_library_file();
  if (const std::string progress = trainer_progress(); !progress.empty())
    throw std::runtime_error("the trainer is still being built: " + progress);
  load_torch_of_python();
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* error = ::dlerror();
    if (const std::string failed = first_line(program_folder() / "trainer.failed"); !failed.empty())
      throw std::runtime_error("the trainer could not be built; " + failed);
    std::string why = error ? error : file;
    if (why.rfind("libtorch", 0) == 0 || why.rfind("libc10", 0) == 0) why += "; " + torch_to_install + " brings it";
    throw std::runtime_error("the training library could not be loaded: " + why);
  }
  void* symbol = ::dlsym(handle, trainer_library_symbol);
  if (!symbol) throw std::runtime_error(file + " is not Stepladder's training library");
  return reinterpret_cast<TrainerLibraryEntry>(symbol)();
}

}  // namespace

std::string trainer_torch_version() {
  std::error_code error;
  return fs::exists(trainer_library_file(), error) ? STEPLADDER_TORCH_VERSION : "";
}

std::string trainer_progress() {
  std::error_code error;
  const fs::path file = program_folder() / "trainer.progress";
  const auto written = fs::last_write_time(file, error);
  const bool is_current = !error && fs::file_time_type::clock::now() - written < std::chrono::minutes(1);
  return is_current ? first_line(file) : "";
}

const TrainerLibrary& trainer_library() {
  static const TrainerLibrary* const library = open_trainer_library();
  return *library;
}

}  // namespace stepladder
