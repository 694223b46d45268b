// Takes the slices of chosen steps out of a trace. Inside storage/traces/ only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/traces/segments.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

struct StepWindow {
  int rank = 0;
  StepSpan device;                   // the step, as attribution.h has it
  StepSpan cpu;                      // what the CPU did for it; the same without a GPU
  const std::string* gpu = nullptr;  // whose kernels; null: none
};

// Places in `steps`, which are of one rank: all of a few steps, as profilers take; of more the first, the median and
// the last.
std::vector<std::size_t> steps_to_keep(const std::vector<TracedStep>& steps);

// The calls that launched kernels, by correlation, and the kernels of the window's GPU as attribution.h has placed
// them, by time. Owns neither.
struct LaunchedWork {
  const std::vector<Launch>& launches;
  std::span<const Segment> kernels;
};

// The slices that begin in the window.
StepSlices slices_of(const Trace& trace, const Places& places, const LaunchedWork& work, const StepWindow& window);

}  // namespace stepladder
