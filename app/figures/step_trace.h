// Kept steps of an imported trace as a file that other viewers open (docs/profiling.md). Pure.
#pragma once

#include <string>
#include <vector>

#include "app/figures/sink.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

struct PlacedStep {
  StepSlices slices;
  double start_ms = 0;  // since the first step of its rank
};

// Each rank is a process, each thread and stream a track, and each use of memory a counter. Steps keep their times,
// with a gap between two that were kept.
struct StepTrace {
  std::string name;
  std::vector<PlacedStep> steps;  // by rank, then time
};

// Chrome's JSON, in the form of PyTorch's profiler: Perfetto, chrome://tracing, TensorBoard and `profile import` read
// it.
void write_chrome_trace(const StepTrace& trace, const Sink& sink);
// Perfetto's own protobuf.
void write_perfetto_trace(const StepTrace& trace, const Sink& sink);

}  // namespace stepladder
