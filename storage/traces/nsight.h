// Reads what `nsys export --type sqlite` writes.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "storage/traces/trace.h"
#include "storage/traces/trace_bytes.h"

namespace stepladder {

bool is_nsight(std::string_view head);  // by the first bytes of a file: whether it is an SQLite database

// A trace for each process with work on a GPU, in the order of their GPUs; also of an export packed with gzip. Throws
// TraceError.
std::vector<Trace> read_nsight(const std::filesystem::path& file, const TraceProgress& progress = {});

}  // namespace stepladder
