// The runs that a claim rests on, read from the logs of a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "storage/speedrun/speedrun_log.h"

namespace stepladder {

struct ExcludedLog {
  std::string file;
  std::string why;
  bool unfinished = false;  // a run that was begun and doesn't count
  bool failed = false;      // `record run` saw its command fail
  bool is_empty = false;
  bool has_steps = false;         // it holds training steps, so it is a log
  std::string content_hash = {};  // SpeedrunLog's
};

struct RecordPool {
  std::vector<SpeedrunLog> logs;  // finished runs; of those with one script, only the first keeps its text
  std::vector<ExcludedLog> excluded;

  void add(SpeedrunLog log);
};

// A folder from elsewhere may hold links to files that its user never meant to show, so none is followed.
struct PoolFiles {
  std::vector<std::filesystem::path> logs;
  std::vector<std::filesystem::path> links;  // they would be logs by name
};
inline constexpr const char* link_problem = "is a link, which a pool doesn't follow; name the log itself";

// The log, which may be a link, or of a folder its logs as add_logs reads them, by name. Throws StorageError as it
// does.
PoolFiles log_files(const std::filesystem::path& path);

// Adds the log, or of a folder the files that end in .txt, .log or .out or have no ending, by name; not those of its
// subfolders. Links are excluded. Throws StorageError if the path doesn't exist or a folder holds no such file.
void add_logs(RecordPool& pool, const std::filesystem::path& path, const LogQuestion& question);

}  // namespace stepladder
