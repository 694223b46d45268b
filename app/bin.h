// The bin: runs that their user has deleted stay in it until they are taken out for good, by age or by hand. Their rows
// go first, then the checkpoints that lie beside the database: each run's own folder and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/database/run_store.h"

namespace stepladder {

struct BinnedRun {
  Run run;
  double deleted_at = missing;
  std::int64_t checkpoint_bytes = 0;
};

struct EmptiedBin {
  std::vector<RunId> runs;
  std::int64_t freed_bytes = 0;       // of checkpoints
  std::vector<std::string> problems;  // folders that could not be removed, and why; tried again the next time
};

// What is in the bin, oldest first. Looks at the disk.
std::vector<BinnedRun> runs_in_bin(RunStore& store);

// Takes out for good what was put into the bin before `deleted_before`. Throws StorageError where nothing was taken.
EmptiedBin empty_bin(RunStore& store, double deleted_before);

// "3 runs are gone for good, 1.2 GB of checkpoints freed"
std::string emptied_text(const EmptiedBin& emptied);

// `stepladder bin`: what is in it, or (`empty`) takes all of it out. Returns the exit status.
int show_bin(const std::filesystem::path& database, bool empty, bool json);

}  // namespace stepladder
