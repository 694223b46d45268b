// `stepladder setup-training`: makes a Python environment of Stepladder's own, in the user's data folder, and lets pip
// install torch and the trainer there. No other environment changes. A half-made one has no mark of completion
// (engine/open_trainer.h) and is made anew.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/process/awaited_program.h"
#include "app/text/format.h"
#include "engine/open_trainer.h"
#include "storage/errors.h"
#include "storage/own_folder.h"
#include "storage/process.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

struct TrainingSetup {
  fs::path wheel;  // of the trainer; empty: the package index's
  bool is_agreed = false, removes = false;
};

// What is installed takes 5 GB, and pip's own files meanwhile half as much (docs/benchmarks.md).
constexpr double needed_bytes = 8e9;
constexpr double needed_bytes_beside_torch = 1e8;  // the trainer alone

// With --yes, or if the user agrees on the terminal.
bool is_agreed(const TrainingSetup& setup, const std::string& what) {
  if (setup.is_agreed) return true;
  if (::isatty(STDIN_FILENO) != 1) throw UsageError("--yes is needed to " + what);
  return agrees("May I " + what + "?");
}

// Ends with a sentence if another process is at it. Held until the descriptor is closed.
Descriptor lock_folder(const TrainingFolder& folder) {
  if (!make_private_folders(folder.path.parent_path()))
    throw StorageError(folder.path.parent_path().string() +
                       " cannot be made: " + std::generic_category().message(errno));
  const std::string file = folder.path.string() + ".lock";
  Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) throw StorageError(file + " cannot be opened: " + std::generic_category().message(errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    throw StorageError("another `stepladder setup-training` is at work in " + folder.path.string());
  return lock;
}

// Removes only a folder that this command has made.
void remove_folder(const TrainingFolder& folder) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder.path, error))) return;
  if (!fs::exists(folder.mark(), error))
    throw StorageError(folder.path.string() +
                       " isn't a folder that `stepladder setup-training` has made; move it away");
  fs::remove(folder.complete(), error);  // first, so that what is left of it is never taken for whole
  const Descriptor parent = open_folder(folder.path.parent_path().string());
  if (!parent || !remove_tree(parent.get(), folder.path.filename().string()))
    throw StorageError(folder.path.string() + " could not be removed completely");
}

// Whether an earlier Stepladder's installation has the torch that this one needs.
bool has_torch(const TrainingFolder& folder) {
  std::error_code error;
  if (!fs::exists(folder.complete(), error)) return false;
  const std::string package = "torch-" + trainer_torch_version();
  for (auto it = fs::directory_iterator(folder.environment() / "lib", error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (fs::exists(it->path() / "site-packages" / (package + ".dist-info"), error)) return true;
  return false;
}

void check_space(const TrainingFolder& folder) {
  const fs::path place = folder.path.parent_path();
  const double needed = has_torch(folder) ? needed_bytes_beside_torch : needed_bytes;
  std::error_code error;
  const fs::space_info space = fs::space(place, error);
  if (!error && static_cast<double>(space.available) < needed)
    throw StorageError(place.string() + " has " + bytes_text(static_cast<double>(space.available)) +
                       " left, and training needs " + bytes_text(needed) + " there while it is set up");
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

// Runs a part of the installation. On a terminal it shows its own progress there. `what` completes "... could not be".
void run_part(std::vector<std::string> command, const std::string& what, bool shows) {
  // Nothing of the user's own environments has a say in where things are installed.
  Launch launch{.command = std::move(command),
                .environment = {"PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER",
                                "PIP_PYTHON", "PIP_DRY_RUN", "PIP_NO_DEPS", "PIP_REQUIRE_VIRTUALENV", "VIRTUAL_ENV"},
                .group = Launch::Group::ours};
  const auto outcome = [&](Process& process) {
    while (!process.wait(std::chrono::milliseconds(100)))
      if (interrupted()) process.end();
    if (interrupted()) throw Interrupted();
    return process.exit_status();
  };
  try {
    if (shows) {
      launch.output = launch.errors = STDERR_FILENO;
      Process process(launch);
      if (const int status = outcome(process); status != 0)
        throw StorageError(what + " could not be installed: the program above ended with status " +
                           std::to_string(status));
      return;
    }
    AwaitedProgram program(launch);
    if (const int status = outcome(program.process()); status != 0) {
      std::string why = last_line(program.errors());
      if (why.empty()) why = last_line(program.output());
      throw StorageError(what + " could not be installed: " + (why.empty() ? "status " + std::to_string(status) : why));
    }
  } catch (const std::system_error& error) {
    throw StorageError(what + " could not be installed: " + error.what());
  }
}

// pip's configuration files may send what is installed elsewhere, also over another environment's torch.
void refuse_other_places(const fs::path& python) {
  AwaitedProgram program(
      {.command = {python.string(), "-I", "-m", "pip", "config", "list"}, .group = Launch::Group::ours});
  while (!program.process().wait(std::chrono::milliseconds(100)))
    if (interrupted()) throw Interrupted();
  std::istringstream lines(program.output());
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find('='));
    const std::string name = key.substr(key.rfind('.') + 1);
    if (name == "target" || name == "prefix" || name == "root" || name == "user")
      throw StorageError("pip's configuration has " + line +
                         ", so torch would not be installed apart; `pip config unset " + key +
                         "` removes it, or set PIP_CONFIG_FILE to another file for this call");
  }
}

void install(const TrainingFolder& folder, const TrainingSetup& setup, const CommonOptions& common) {
  const bool shows = !common.json && ::isatty(STDERR_FILENO) == 1;
  const fs::path python = folder.environment() / "bin" / "python";
  const bool is_update = fs::exists(folder.complete());  // from another version, whose torch may be the same
  if (!is_update) {
    remove_folder(folder);
    fs::create_directory(folder.path);
    std::ofstream(folder.mark()) << "made by `stepladder setup-training`, which removes it with --remove\n";
    run_part({"python3", "-I", "-m", "venv", folder.environment().string()},
             "a Python environment (Debian: python3-venv)", shows);
  }
  refuse_other_places(python);
  const auto pip_install = [&](const std::vector<std::string>& what) {
    std::vector<std::string> pip = {
        python.string(), "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"};
    if (!shows) pip.push_back("-q");
    pip.insert(pip.end(), what.begin(), what.end());
    run_part(std::move(pip), "torch and the trainer", shows);
  };
  const std::string wheel = setup.wheel.string();
  // An update that fails leaves the mark of the old trainer, whose interface says whether what is there still fits.
  // Together, so that pip refuses a trainer that can't run here before it downloads torch.
  pip_install({"torch==" + trainer_torch_version(),
               wheel.empty() ? std::string("stepladder-trainer==") + STEPLADDER_VERSION : wheel});
  if (is_update && !wheel.empty())
    pip_install({"--no-deps", "--force-reinstall", wheel});  // its number may be the same
  folder.finish();
}

int report(const char* state, const TrainingFolder& folder, const CommonOptions& common) {
  if (common.json)
    print({{"state", state}, {"folder", folder.path.string()}, {"torch", trainer_torch_version()}});
  else if (state == std::string_view("ready"))
    std::cout << "Training is set up, with torch " << trainer_torch_version() << " in " << folder.path.string() << "\n";
  else
    std::cout << "Training isn't set up; " << folder.path.string() << " is not there\n";
  return exit_done;
}

int set_up_training(const TrainingSetup& setup, const CommonOptions& common) {
  const TrainingFolder folder = TrainingFolder::of_user();
  std::error_code error;
  if (setup.removes) {
    if (!fs::exists(fs::symlink_status(folder.path, error))) return report("removed", folder, common);
    if (!is_agreed(setup, "remove " + folder.path.string())) return exit_failed;
    const Descriptor lock = lock_folder(folder);
    remove_folder(folder);
    return report("removed", folder, common);
  }
  if (trainer_torch_version().empty())
    throw NotFound("this build of Stepladder can't train: there is no trainer for it");
  if (!folder.trainer().empty() && setup.wheel.empty()) return report("ready", folder, common);
  if (!setup.wheel.empty() && !fs::is_regular_file(setup.wheel, error))
    throw NotFound(setup.wheel.string() + " is not a file");
  const std::string what = has_torch(folder)
                               ? "install the trainer beside the torch " + trainer_torch_version() + " in "
                               : "download torch " + trainer_torch_version() + " (up to 3 GB; 5 GB installed) into ";
  if (!is_agreed(setup, what + folder.path.string() + ", apart from every other Python environment"))
    return exit_failed;
  const Descriptor lock = lock_folder(folder);
  check_space(folder);
  std::cerr << "stepladder: installing torch " << trainer_torch_version() << " and the trainer in "
            << folder.path.string() << "\n";
  try {
    install(folder, setup, common);
  } catch (...) {
    if (!fs::exists(folder.complete(), error) && fs::exists(folder.mark(), error)) remove_folder(folder);
    throw;
  }
  return report("ready", folder, common);
}

}  // namespace

Subcommand setup_training_command(CLI::App& app, CommonOptions& common) {
  auto setup = std::make_shared<TrainingSetup>();
  CLI::App* command = add_with_json(app, common, "setup-training",
                                    "Install torch for training, apart from every other Python environment");
  command->add_flag("--yes", setup->is_agreed, "Without asking");
  CLI::Option* removing = command->add_flag("--remove", setup->removes, "Remove what this command has installed");
  command->add_option("--wheel", setup->wheel, "Wheel of the trainer (default: the package index's)")
      ->excludes(removing);
  return {command, [setup, &common] { return set_up_training(*setup, common); }};
}

}  // namespace stepladder
