// The steps that are kept of a trace, ready to be played again with some rows changed. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/analysis/prediction/replay.h"
#include "storage/analysis/prediction/stage_law.h"
#include "storage/traces/attribution.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

class PredictedSteps {
 public:
  // `kept` are steps of that trace. `run_ms`: a step of its run without a profiler; missing: not known. A profiler
  // takes time for each slice, so small operators look longer than they are. Where a CPU's traced step is longer than
  // its run's, the difference is taken off in equal parts, at most four fifths of a piece of time.
  PredictedSteps(const TraceProfile& profile, std::vector<StepSlices> kept, double run_ms = missing);

  bool empty() const { return steps_.empty(); }  // no kept step has a length

  double shortest_ms() const { return shortest_ms_; }  // of the kept steps; those far longer aren't played

  // The rows of a mean step for laws: on a GPU how long kernels ran. An operator whose slices are in several parts of
  // the model is several rows.
  const std::vector<LawRow>& rows() const { return rows_; }

  // Milliseconds of these rows in a mean step.
  double ms_of(const WorkChange& change) const;

  // For each kept step its new length over the traced one, with all of these changes. A change of the kind `idle`
  // changes the threads that launch a GPU's work.
  std::vector<double> length_ratios(std::span<const WorkChange> changes) const;

  // Milliseconds of communication in a mean step that no computation hides, and of a GPU's idle time.
  double exposed_ms() const { return exposed_ms_; }
  bool are_parts_known() const;  // of the model, of some of the slices
  bool on_gpu() const { return on_gpu_; }

 private:
  struct Step {
    Replay replay;
    std::vector<WorkPlace> places;
    std::vector<std::string> names;
    std::vector<double> without_profiler;  // the factor of each task that takes the profiler's time off
    double length_ns = 0;                  // of the step without it
  };
  static void take_profiler_off(Step& step, double run_ms);
  ReplayChange change_of(const Step& step, std::span<const WorkChange> changes) const;
  void make_rows(const TraceProfile& profile);

  std::vector<Step> steps_;
  std::vector<LawRow> rows_;
  double exposed_ms_ = 0;
  double shortest_ms_ = missing;
  bool on_gpu_ = false;
};

// A traced step as the tasks that can be played again (storage/analysis/prediction/replay.h). Pure.
// Nested slices of a thread become the pieces of time that belong to each of them. A call that waits for the GPU is one
// whose name says so, one that returns after its own copy has ended, or a launch that takes far longer than its
// likes while the GPU is behind: its queue was full. Places and names are those of
// `step`: of a kernel and its launch, that of the operator around the launch.
ReplayStep replay_step(const StepSlices& step);

}  // namespace stepladder
