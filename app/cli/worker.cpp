#include "app/cli/worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>
#include <iterator>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "engine/engine.h"
#include "engine/processes/worker_processes.h"
#include "engine/step_tracing.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Rank 0 may end, or be killed, between spawning this process and the call of prctl.
bool tied_to_parent() {
  const char* parent = std::getenv(worker_parent_variable);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return parent && std::to_string(::getppid()) == parent;
}

// Trains to the end and returns the last event.
RunEnded train_unrecorded(const Recipe& recipe, bool (*interrupted)()) {
  std::promise<RunEnded> ended;
  std::future<RunEnded> end = ended.get_future();
  Engine engine([&](const RunEvent& event) {
    if (const auto* last = std::get_if<RunEnded>(&event)) ended.set_value(*last);
  });
  constexpr RunId unrecorded = 0;
  engine.submit({.run = unrecorded, .recipe = recipe});
  while (end.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
    if (interrupted()) engine.stop(unrecorded);
  return end.get();
}

// Traces the same steps as rank 0.
int trace_as_worker(const StepTracing& asked) {
  try {
    probe_to_trace();
    trace_steps(asked, [] { return false; });
    return exit_done;
  } catch (const std::exception& error) {
    std::cerr << "stepladder: " << error.what() << "\n";
    return exit_failed;
  }
}

// The hidden command that rank 0 starts (engine/processes/worker_processes.h): reads the recipe from stdin, and ends
// with the process that started it, for any reason.
int run_worker() {
  // A terminal's Ctrl-C reaches all processes of a job, but rank 0 decides when all of them stop. The same for Ctrl-Z.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGTSTP, SIG_IGN);
  if (!tied_to_parent()) return exit_failed;
  const std::string json(std::istreambuf_iterator<char>(std::cin), {});
  const Recipe recipe = recipe_from_json(json);
  const int rank = placement_from_environment().value_or(Placement{}).rank;
  if (const std::optional<StepTracing> asked = tracing_of_worker(recipe, rank)) return trace_as_worker(*asked);
  const RunEnded end = train_unrecorded(recipe, [] { return false; });
  if (end.status != RunStatus::failed) return exit_done;
  std::cerr << "stepladder: " << end.reason << "\n";
  return exit_failed;
}

}  // namespace

int run_rank(const Placement& placement, const Recipe& recipe, bool (*interrupted)()) {
  std::signal(SIGTSTP, SIG_IGN);  // rank 0 would lose contact with this one
  const RunEnded end = train_unrecorded(recipe, interrupted);
  if (end.status == RunStatus::finished) return exit_done;
  if (end.status == RunStatus::stopped) return exit_interrupted;
  std::cerr << "stepladder: rank " << placement.rank << ": " << end.reason << "\n";
  return exit_failed;
}

Subcommand worker_processes_command(CLI::App& app, CommonOptions&) {
  return {app.add_subcommand(worker_command, "")->group(""), run_worker};
}

void refuse_several_processes(std::string_view what) {
  if (const auto placement = placement_from_environment(); placement && placement->world_size > 1)
    throw UsageError(fmt::format("{} starts its processes itself: give --nproc instead of starting it {} times", what,
                                 placement->world_size));
}

}  // namespace stepladder
