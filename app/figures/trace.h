// Steps on the wall clock, with their parts beneath, as Chrome's trace event format (which Perfetto opens).
#pragma once

#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct TracedRun {
  const Run* run = nullptr;
  const std::vector<StepRecord>* steps = nullptr;
};

// A process for each run; times are microseconds since the earliest step began. Steps without a wall clock (most
// imports) follow each other without a gap. Parts of a step are summed over its micro-batches and shown one after the
// other in the order of the loop; the rest of the step follows them.
std::string trace_json(const std::vector<TracedRun>& runs);

}  // namespace stepladder
