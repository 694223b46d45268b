// Imports the traces of profilers (docs/profiling.md). Blocks; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/traces/trace_bytes.h"
#include "storage/traces/traced_process.h"

namespace stepladder {

// The format of traces that `stepladder profile run` has made (app/cli/profile/trace_run.h).
inline constexpr const char* own_trace_format = "stepladder";

struct TraceFiles {
  std::vector<std::string> files;  // one for each rank
  std::string name;                // empty: that of the first file
  std::optional<RunId> run;        // that they were taken of
};

struct ReadTrace {
  StoredTrace trace;  // without id and profile
  TracedProcess process;
};

// `progress` covers all files together. Throws StorageError, which names the file.
ReadTrace read_traces(const TraceFiles& asked, const TraceProgress& progress = {});

}  // namespace stepladder
