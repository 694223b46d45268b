#include "app/profile/traced_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/text/format.h"
#include "storage/analysis/kernel_kind.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {

std::string doubt_about(double profiled_step_ms, double run_step_ms) {
  if (is_missing(profiled_step_ms) || !(run_step_ms > 0) || is_comparable(profiled_step_ms, run_step_ms)) return "";
  return "A step of this profile takes " + milliseconds_text(profiled_step_ms) + ", a step of its run " +
         milliseconds_text(run_step_ms) +
         (profiled_step_ms < run_step_ms
              ? ": the run's steps hold time that this profile doesn't, such as other programs, data loading or pauses."
              : ": other programs disturbed it, or the profiler slows this step down.") +
         " It doesn't explain the run's speed.";
}

std::vector<std::string> notes_of(const TraceProfile& profile) {
  std::vector<std::string> notes = profile.notes;
  KindArray sums{};
  std::set<std::int64_t> last;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    for (std::size_t kind = 0; kind < sums.size(); ++kind) sums[kind] += profile.steps[i].ms[kind];
    if (!is_followed(profile.steps, i)) last.insert(profile.steps[i].step);
  }
  if (profile.on_gpu && profile.has_steps && std::ssize(profile.steps) == profile.ranks) {
    notes.emplace_back("The trace holds one step and nothing behind it, so the step ends when its work is done.");
  } else if (profile.on_gpu && profile.has_steps && !last.empty()) {
    notes.push_back(fmt::format(
        "No step follows step {}, which ends when its work is done, or after the CPU's time for it if that is later.",
        fmt::join(last, ", ")));
  }
  const auto mean_of = [&](OperatorKind kind) {
    return sums[static_cast<std::size_t>(kind)] / static_cast<double>(std::max<std::size_t>(profile.steps.size(), 1));
  };
  const auto share = [&](double ms) {
    return milliseconds_text(ms) + " of a step (" + fine_percent_text(ms / mean_step_ms(profile)) + ")";
  };
  if (const double ms = mean_of(OperatorKind::other); ms > 0)
    notes.push_back(share(ms) + " is the time of kernels whose names Stepladder doesn't know: \"other\".");
  double by_launcher = 0;
  for (const TracedOperator& each : profile.operators)
    if (!each.launcher.empty() && !kernel_kind(each.time.name) && kind_of(each) != OperatorKind::other)
      by_launcher += each.time.self_ms;
  if (by_launcher > 0)
    notes.push_back(share(by_launcher) +
                    " has the kind of the operator that launched it: the kernel's name says none.");
  if (const double ms = mean_of(OperatorKind::graph); ms > 0)
    notes.push_back(share(ms) +
                    " is the time of CUDA graphs that the profiler traced as a whole; its option "
                    "--cuda-graph-trace=node shows their kernels.");
  return notes;
}

std::string doubt_about(RunStore& store, const StoredTrace& trace) {
  const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
  return run ? doubt_about(store.traces().step_ms(trace.id), store.summary(*run).dt_ms_median) : "";
}

}  // namespace stepladder
