// Imports a profiler's trace into the project.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/job.h"
#include "app/profile/trace_owner.h"
#include "storage/database/traces/trace_store.h"

namespace stepladder {

struct ImportedTrace {
  TraceId id = 0;  // 0: it was stopped
  std::string name;
  bool is_own = false;     // traced here: shown alone, since nobody brought it to be compared
  bool is_new = true;      // false: the project had it
  bool is_passes = false;  // no trace: passes that were timed and kept
  TraceOwner owner;        // the run that it was attached to, or may be of
};

// Reports the share that is read. An interrupted import keeps nothing. Blocks; any thread. Throws StorageError.
ImportedTrace import_trace(const std::filesystem::path& database, const std::string& file, JobControl& job);

// Traces a run launched here in a process of its own, which attaches the trace to it. The same.
ImportedTrace trace_run(const std::filesystem::path& database, RunId run, JobControl& job);

// Of the JSON that `profile run` prints. Throws StorageError if it names no trace.
ImportedTrace traced_run(const nlohmann::json& answer, RunId run);

// Times a model's forward and backward pass in a process of its own, which keeps them. The same.
ImportedTrace time_passes(const std::filesystem::path& database, JobControl& job);

}  // namespace stepladder
