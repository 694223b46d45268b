// Opens a profiler's trace, whatever wrote it.
#pragma once

#include <filesystem>
#include <vector>

#include "storage/traces/trace.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

// Recognises the format by content: PyTorch's JSON, also gzipped, which is of one process, or the SQLite export of
// Nsight Systems, which may hold several. Blocks on the disk. Throws TraceError.
std::vector<Trace> read_trace(const std::filesystem::path& file, const TraceProgress& progress = {});

// Whether a file's beginning is that of a trace. Reads at most a megabyte; false if it can't be read.
bool looks_like_trace(const std::filesystem::path& file);

}  // namespace stepladder
