// Reads the traces that PyTorch's profiler exports (Kineto's Chrome JSON).
#pragma once

#include "storage/traces/trace.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

// Reads to the end, event by event. Throws TraceError.
Trace read_kineto(TraceBytes& bytes);

}  // namespace stepladder
