// Steps on the wall clock, with their parts beneath, as Chrome's trace event format (which Perfetto opens).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "app/figures/sink.h"
#include "storage/records.h"

namespace stepladder {

// Passes all steps of a run to its second argument, in order and in pieces of any size.
using ForStepsOf = std::function<void(const Run&, const std::function<void(std::span<const StepRecord>)>&)>;

// A process for each run; times are microseconds since the earliest step began. Steps without a wall clock (most
// imports) follow each other without a gap. Parts of a step are summed over its micro-batches and shown one after the
// other in the order of the loop; the rest of the step follows them. Reads each run twice, since the first step of any
// run may be the earliest.
void write_trace(const std::vector<Run>& runs, const ForStepsOf& for_steps_of, const Sink& sink);

}  // namespace stepladder
