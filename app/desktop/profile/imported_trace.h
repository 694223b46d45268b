// Imports a profiler's trace into the project.
#pragma once

#include <filesystem>
#include <string>

#include "app/job.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

struct ImportedTrace {
  TraceId id = 0;  // 0: it was stopped
  std::string name;
};

// Reports the share that is read. An interrupted import keeps nothing. Blocks; any thread. Throws StorageError.
ImportedTrace import_trace(const std::filesystem::path& database, const std::string& file, JobControl& job);

}  // namespace stepladder
