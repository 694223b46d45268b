// Opens a profiler's trace, whatever wrote it.
#pragma once

#include <filesystem>

#include "storage/traces/trace.h"

namespace stepladder {

// Recognises the format by content: PyTorch's JSON, also gzipped, or the SQLite export of Nsight Systems. Blocks on the
// disk. Throws TraceError.
Trace read_trace(const std::filesystem::path& file);

}  // namespace stepladder
