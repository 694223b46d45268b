#include "engine/step_tracing.h"

#include <cstdlib>
#include <stdexcept>

#include "engine/open_trainer.h"

namespace stepladder {

Recipe recipe_to_trace(const StepTracing& asked) {
  Recipe recipe = asked.recipe;
  recipe.steps = asked.skipped + asked.steps;
  recipe.eval_every = recipe.sample_every = recipe.save_every = 0;
  return recipe;
}

namespace {

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

void trace_steps(const StepTracing& asked, const std::function<bool()>& stop_requested) {
  quieten_profiler();
  with_our_errors([&] { trainer_library().trace_steps(asked, stop_requested); });
}

}  // namespace stepladder
