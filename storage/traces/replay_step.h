// A traced step as the tasks that can be played again (storage/analysis/prediction/replay.h). Pure.
#pragma once

#include "storage/analysis/prediction/replay.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

// Nested slices of a thread become the pieces of time that belong to each of them. A call that waits for the GPU is one
// whose name says so, one that returns after its own copy has ended, or a launch that takes far longer than its
// likes while the GPU is behind: its queue was full. Places and names are those of
// `step`: of a kernel and its launch, that of the operator around the launch.
ReplayStep replay_step(const StepSlices& step);

}  // namespace stepladder
