// Splits the memory of a traced step by its use. Inside storage/traces/ only.
#pragma once

#include <vector>

#include "storage/traces/segments.h"
#include "storage/traces/step_slices.h"

namespace stepladder {

// The memory of one GPU, or of the CPU if `device` is -1, while a step lasts: what was asked for in the forward pass
// counts as activations, in the backward pass as gradients, until it is given back. At most StepSlices::most_memory
// points.
std::vector<MemoryPoint> memory_of(const Trace& trace, const StepSpan& step, int device);

}  // namespace stepladder
