// Opens a profiler's trace, whatever wrote it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "storage/traces/trace.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

// Recognises the format by content: PyTorch's JSON, also gzipped, which is of one process, or the SQLite export of
// Nsight Systems, which may hold several. Blocks on the disk. Throws TraceError.
std::vector<Trace> read_trace(const std::filesystem::path& file, const TraceProgress& progress = {});

// The host in the name of a file of torch.profiler.tensorboard_trace_handler, "HOST_PID.TIME.pt.trace.json"; empty: it
// has another name, or is of another process.
std::string host_in_name(const std::string& name, std::int64_t pid);

// Whether bytes, packed with gzip or not, begin as a trace does.
bool begins_like_trace(std::string_view bytes);

// Whether a file's beginning is that of a trace. Reads at most a megabyte; false if it can't be read.
bool looks_like_trace(const std::filesystem::path& file);

}  // namespace stepladder
