// `stepladder machines setup`: sends a wheel to a machine and installs it in a virtual environment there, as a run of
// kind `setup`. The installation survives this process; a second call follows one that is under way instead of starting
// another.
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <utility>

#include "app/cli/machines/on_machine.h"
#include "app/exit_status.h"
#include "app/machines/far_kind.h"
#include "app/machines/machine_check.h"
#include "app/machines/packed_files.h"
#include "app/text/format.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

std::string architecture() {
  utsname about = {};
  return ::uname(&about) == 0 ? about.machine : "";
}

// The wheel in ./dist for machines like this one that was built last.
fs::path wheel_of_dist() {
  std::error_code error;
  fs::path newest;
  for (auto it = fs::directory_iterator("dist", error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const fs::path& file = it->path();
    const std::string name = file.filename().string();
    if (file.extension() != ".whl" || !name.starts_with("stepladder-") ||
        name.find(architecture()) == std::string::npos)
      continue;
    if (newest.empty() || fs::last_write_time(file) > fs::last_write_time(newest)) newest = file;
  }
  if (newest.empty())
    throw NotFound("no wheel is in ./dist: `./package` in Stepladder's sources builds one; or name one with --wheel");
  return newest;
}

// The trainer's wheel beside it, of the same version and for the same systems; empty if there is none.
fs::path trainer_beside(const fs::path& wheel) {
  const std::string program = "stepladder-", name = wheel.filename().string();
  if (!name.starts_with(program)) return {};
  const fs::path trainer = wheel.parent_path() / ("stepladder_trainer-" + name.substr(program.size()));
  std::error_code error;
  return fs::is_regular_file(trainer, error) ? trainer : fs::path();
}

constexpr int most_failures = 5;  // of the link, in a row: 15 s of waits, and what ssh takes

// Follows the installation to its end. Gives up if the machine can't be reached, since somebody waits; the request is
// kept.
struct FollowedSetup {
  std::optional<FarProgress> progress;  // nullopt: interrupted, or given up
  std::string given_up;                 // why
};
FollowedSetup follow_setup(FarRuns& runs, const Machine& machine, const FarRun& run) {
  constexpr std::chrono::milliseconds patience(100);
  while (!interrupted()) {
    runs.poll(patience);
    auto progress = runs.progress(run.uid);
    if (!progress || progress->run.is_over) return {.progress = std::move(progress), .given_up = {}};
    const Link& link = runs.link(machine);
    if (link.is_up() || (link.failures() < most_failures && !link.is_hopeless())) continue;
    const std::string tries = link.failures() == 1 ? "once" : std::to_string(link.failures()) + " times";
    const std::string rest =
        progress->run.is_started
            ? "The installation goes on there; `machines setup " + machine.alias.text() + "` follows it"
            : "The machine hasn't confirmed the request, which is kept; `machines setup " + machine.alias.text() +
                  "` tries again, as do `machines follow` and the window";
    const std::string why = unreachable(link).reason;
    return {.progress = {},
            .given_up = why + (why.ends_with('.') ? " " : ". ") + "It was tried " + tries + ". " + rest};
  }
  return {};
}

}  // namespace

void add_setup_options(CLI::App& command, MachineSetup& setup) {
  command.add_option("--wheel", setup.wheel,
                     "Wheel to install, with the trainer's beside it (default: the one that was built last in ./dist)");
  command.add_flag("--yes", setup.is_agreed, "Install without asking");
}

int set_up(const std::string& alias, const MachineSetup& setup, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  const Machine machine = find_machine(store, alias);
  const fs::path wheel = setup.wheel.empty() ? wheel_of_dist() : setup.wheel;
  const fs::path wheels = wheel.parent_path().empty() ? "." : wheel.parent_path();
  const fs::path trainer = trainer_beside(wheel);
  std::error_code error;
  const auto bytes = fs::file_size(wheel, error);
  if (error) throw NotFound(wheel.string() + " cannot be read: " + error.message());
  const std::string folder = (machine.folder.empty() ? "~/.stepladder" : machine.folder.text()) + "/venv";
  const std::string what = "send " + wheel.filename().string() + " (" + bytes_text(double(bytes)) + ") to " + alias +
                           " and install it in " + folder + " there" +
                           (trainer.empty() ? ", without training, since no trainer's wheel of its version is beside it"
                                            : "; pip downloads LibTorch, up to 3 GB with CUDA");
  if (!setup.is_agreed && ::isatty(STDIN_FILENO) != 1) throw UsageError("--yes is needed to " + what);
  if (!setup.is_agreed && !agrees("May I " + what + "?")) return exit_failed;
  std::string names = wheel.filename().string() + '\0';
  if (!trainer.empty()) names += trainer.filename().string() + '\0';
  const PackedFiles packed = PackedFiles::of(wheels, names);
  const std::string script =
      "set -e; v=\"${STEPLADDER_DIR%/runs/*}/venv\"; python3 -m venv \"$v\"; \"$v/bin/pip\" install --no-input "
      "--disable-pip-version-check ./*.whl; \"$v/bin/stepladder\" --version";
  FarRuns runs(store, callbacks_for_terminal(!common.json), asks_on_terminal());
  std::optional<FarRun> run = runs.follow_open(machine, far_kind::setup, packed.archive());
  if (run && run->is_started)
    std::cerr << "stepladder: follows the installation that is under way at " << alias << "\n";
  if (!run)
    run = runs.start(
        machine,
        {.kind = far_kind::setup, .name = "setup", .command = {"/bin/sh", "-c", script}, .tree = packed.archive()});
  const auto [progress, given_up] = follow_setup(runs, machine, *run);
  if (given_up.empty() && !progress) return exit_interrupted;
  const bool done = given_up.empty() && progress->phase == "ended" && progress->exit_status == 0;
  if (!done) {
    const std::string why = given_up.empty() ? progress->reason : given_up;
    throw StorageError("Stepladder could not be installed at " + alias + (why.empty() ? "" : ": " + why));
  }
  if (common.json) print({{"machine", alias}, {"installed", wheel.filename().string()}});
  return exit_done;
}

}  // namespace stepladder
