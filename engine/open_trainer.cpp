// Looks for the trainer beside the program, in the wheel beside the program's, and in the user's training folder, in
// this order, and opens the first one. A trainer of another build would crash: its interface says that it fits.
#include "engine/open_trainer.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "storage/own_folder.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

#ifdef __APPLE__
constexpr const char* library_name = "libstepladder_trainer.dylib";
#else
constexpr const char* library_name = "libstepladder_trainer.so";
#endif

const std::string torch_to_install = std::string("pip install torch==") + STEPLADDER_TORCH_VERSION;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Empty where the system doesn't say.
fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream text(file);
  std::getline(text, line);
  return line;
}

// STEPLADDER_TRAINER_LIBRARY, else the library beside the running program or in the wheel stepladder-trainer beside it;
// empty: there is none.
fs::path trainer_beside_program() {
  if (const char* named = std::getenv("STEPLADDER_TRAINER_LIBRARY"); named && *named) return named;
  const fs::path folder = program_folder();
  if (folder.empty()) return library_name;
  if (!trainer_progress().empty()) return {};  // it may be half written
  for (const fs::path& file : {folder / library_name, folder.parent_path() / "stepladder_trainer" / library_name})
    if (is_file(file)) return file;
  return {};
}

// The version of the package torch whose folder the wheel's command has put into STEPLADDER_TORCH; empty: not known.
std::string version_of_python_torch() {
  const char* folder = std::getenv("STEPLADDER_TORCH");
  std::ifstream text(fs::path(folder ? folder : "") / "version.py");
  const std::string_view begin = "__version__ = '";
  for (std::string line; std::getline(text, line);)
    if (line.rfind(begin, 0) == 0)
      return line.substr(begin.size(), line.find_first_of("'+", begin.size()) - begin.size());
  return {};
}

// LibTorch's versions are not compatible with each other: the trainer would crash with another one.
void load_torch_of_python() {
  const std::string version = version_of_python_torch();
  if (!version.empty() && version != STEPLADDER_TORCH_VERSION)
    throw std::runtime_error("this Stepladder trains with torch " STEPLADDER_TORCH_VERSION ", but torch " + version +
                             " is installed: `stepladder setup-training` installs the other one apart from it");
  const char* folder = std::getenv("STEPLADDER_TORCH");
  if (!folder || !*folder) return;
  // The trainer finds it by name then, wherever it is. If it isn't there, opening the trainer says so.
  ::dlopen((fs::path(folder) / "lib" / "libtorch_cpu.so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

const TrainerLibrary* open_trainer_file(const std::string& file) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* error = ::dlerror();
    std::string why = error ? error : file;
    if (why.rfind("libtorch", 0) == 0 || why.rfind("libc10", 0) == 0) why += "; " + torch_to_install + " brings it";
    throw std::runtime_error("the training library could not be loaded: " + why);
  }
  void* symbol = ::dlsym(handle, trainer_library_symbol);
  if (!symbol) throw std::runtime_error(file + " is not Stepladder's training library");
  const void* interface = ::dlsym(handle, trainer_interface_symbol);
  if (!interface || std::string_view(static_cast<const char*>(interface)) != STEPLADDER_TRAINER_INTERFACE)
    throw std::runtime_error(file +
                             " belongs to another version of Stepladder; `stepladder setup-training` installs "
                             "this one's");
  return reinterpret_cast<TrainerLibraryEntry>(symbol)();
}

// Never closes it, since LibTorch's threads and statics would crash. Throws std::runtime_error with a sentence.
const TrainerLibrary* open_trainer_library() {
  const TrainingFolder own = TrainingFolder::of_user();
  const fs::path beside = trainer_beside_program();
  const std::string torch = version_of_python_torch();
  const bool fits = torch.empty() || torch == STEPLADDER_TORCH_VERSION || own.trainer().empty();
  if (!beside.empty() && fits) {
    load_torch_of_python();
    return open_trainer_file(beside.string());
  }
  if (const std::string why = missing_trainer(); !why.empty()) throw std::runtime_error(why);
  return open_trainer_file(own.trainer().string());
}

}  // namespace

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

std::string missing_trainer() {
  const TrainingFolder own = TrainingFolder::of_user();
  if (!trainer_beside_program().empty() || !own.trainer().empty()) return {};
  if (const std::string progress = trainer_progress(); !progress.empty())
    return "the trainer is still being built: " + progress;
  if (const std::string failed = first_line(program_folder() / "trainer.failed"); !failed.empty())
    return "the trainer could not be built; " + failed;
  if (trainer_torch_version().empty())
    return "this build of Stepladder can't train; it records, imports and judges what others train";
  if (is_file(own.complete()))
    return "training was set up for another version of Stepladder: `stepladder setup-training` sets it up for this one";
  return "training isn't set up: `stepladder setup-training` installs torch " STEPLADDER_TORCH_VERSION
         " apart from yours";
}

std::string trainer_torch_version() {
  return STEPLADDER_TORCH_VERSION;
}

TrainingFolder TrainingFolder::of_user() {
  return {user_folder("XDG_DATA_HOME", ".local/share") / "stepladder" / "training"};
}

fs::path TrainingFolder::trainer() const {
  if (!open_own_folder(path)) return {};  // a library is loaded from it
  std::ifstream text(complete());
  std::string file, interface;
  if (!std::getline(text, file) || !std::getline(text, interface)) return {};
  if (interface != STEPLADDER_TRAINER_INTERFACE || !is_file(path / file)) return {};
  return path / file;
}

void TrainingFolder::finish() const {
  std::error_code error;
  for (auto it = fs::directory_iterator(environment() / "lib", error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const fs::path file = it->path() / "site-packages" / "stepladder_trainer" / library_name;
    if (!is_file(file)) continue;
    open_trainer_file(file.string());
    std::ofstream text(complete());
    text << fs::relative(file, path).string() << "\n" << STEPLADDER_TRAINER_INTERFACE << "\n";
    text.close();
    if (!text) throw std::runtime_error(complete().string() + " could not be written");
    return;
  }
  throw std::runtime_error("the package stepladder-trainer has no " + std::string(library_name));
}

}  // namespace stepladder
