#include "app/profile/traced_run.h"

#include <optional>

#include "app/text/format.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

std::string doubt_about(double profiled_step_ms, double run_step_ms) {
  if (is_missing(profiled_step_ms) || !(run_step_ms > 0) || is_comparable(profiled_step_ms, run_step_ms)) return "";
  return "A step of this profile takes " + milliseconds_text(profiled_step_ms) + ", a step of its run " +
         milliseconds_text(run_step_ms) +
         ": other programs disturbed it, or the profiler slows this step down. It doesn't explain the run's speed.";
}

std::string doubt_about(RunStore& store, const StoredTrace& trace) {
  const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
  return run ? doubt_about(store.traces().step_ms(trace.id), store.summary(*run).dt_ms_median) : "";
}

}  // namespace stepladder
