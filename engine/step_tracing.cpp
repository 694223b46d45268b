#include "engine/step_tracing.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include "engine/open_trainer.h"

namespace stepladder {

Recipe recipe_to_trace(const StepTracing& asked) {
  Recipe recipe = asked.recipe;
  recipe.steps = asked.skipped + asked.steps;
  recipe.eval_every = recipe.sample_every = recipe.save_every = 0;
  return recipe;
}

std::filesystem::path trace_file_of(const std::filesystem::path& file, int rank) {
  if (rank == 0) return file;
  std::filesystem::path own = file;
  return own.replace_filename(file.stem().string() + "-rank" + std::to_string(rank) + file.extension().string());
}

namespace {

// "3 5 FILE": steps before the traced ones, traced ones, rank 0's file.
constexpr const char* worker_tracing_variable = "STEPLADDER_TRACE_STEPS";

// While it exists, the environment asks the workers that this process starts to trace.
class WorkersAreAsked {
 public:
  explicit WorkersAreAsked(const StepTracing& asked) {
    const std::string text =
        std::to_string(asked.skipped) + " " + std::to_string(asked.steps) + " " + asked.file.string();
    ::setenv(worker_tracing_variable, text.c_str(), /*overwrite=*/1);
  }
  ~WorkersAreAsked() { ::unsetenv(worker_tracing_variable); }
  WorkersAreAsked(const WorkersAreAsked&) = delete;
  WorkersAreAsked& operator=(const WorkersAreAsked&) = delete;
};

// The caller may not have the library's types of exceptions.
template <class Work>
auto with_our_errors(const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw std::runtime_error(error.what());
  }
}

// Kineto and LibTorch write remarks about themselves on stderr. What matters is in the trace, or missing there. Both
// read their levels when they are loaded; the user may have set others.
void quieten_profiler() {
  ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
}

}  // namespace

DeviceReport probe_to_trace() {
  quieten_profiler();
  return with_our_errors([] { return trainer_library().probe(); });
}

std::optional<StepTracing> tracing_of_worker(const Recipe& recipe, int rank) {
  const char* const text = std::getenv(worker_tracing_variable);
  if (!text) return std::nullopt;
  StepTracing asked{.recipe = recipe};
  std::istringstream words(text);
  std::string file;
  if (!(words >> asked.skipped >> asked.steps) || !std::getline(words >> std::ws, file)) return std::nullopt;
  asked.file = trace_file_of(file, rank);
  return asked;
}

void trace_steps(const StepTracing& asked, const std::function<bool()>& stop_requested) {
  quieten_profiler();
  const WorkersAreAsked others(asked);
  with_our_errors([&] { trainer_library().trace_steps(asked, stop_requested); });
}

}  // namespace stepladder
