// Imports the traces of profilers (docs/profiling.md). Blocks; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/run_store.h"
#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"

namespace stepladder {

// The format of traces that `stepladder profile run` has made (app/cli/profile/trace_commands.h).
inline constexpr const char* own_trace_format = "stepladder";

struct TraceFiles {
  std::vector<std::string> files;  // one for each rank
  std::string name;                // empty: that of the first file
  std::optional<RunId> run;        // that they were taken of
  bool are_temporary = false;      // their path means nothing afterwards
};

struct ReadTrace {
  StoredTrace trace;  // without id and profile
  TracedProcess process;
};

// `progress` covers all files together. Throws StorageError, which names the file.
ReadTrace read_traces(const TraceFiles& asked, const TraceProgress& progress = {});

// Finds traces that appear at paths: files, or folders and four levels below them. One thread.
class TraceSearch {
 public:
  // The complete traces that no earlier call has returned. A file is complete once its size is the same in two calls,
  // or at once if `is_last`.
  std::vector<std::string> find_new(const std::vector<std::filesystem::path>& paths, bool is_last);

 private:
  void look_at(const std::filesystem::path& file, bool is_last, std::vector<std::string>& found);
  struct Known {
    std::uintmax_t size = 0;
    bool is_done = false;
  };
  std::map<std::string, Known> known_;
};

}  // namespace stepladder
