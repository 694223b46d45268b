// Everything that is kept of one process's trace: the sums of attribution.h, the step's anatomy, and the slices of a
// few steps.
#pragma once

#include <vector>

#include "storage/traces/anatomy.h"
#include "storage/traces/attribution.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

struct TracedProcess {
  TraceProfile profile;
  Anatomy anatomy;
  std::vector<KeptStep> kept;  // of each rank the first, median and last step
};

// Attributes a sorted trace; see `attribute`. Throws TraceError.
TracedProcess attribute_all(const Trace& trace);

// Puts the processes of several ranks together, which must be of the same kind of device.
TracedProcess join_ranks(std::vector<TracedProcess> ranks);

}  // namespace stepladder
