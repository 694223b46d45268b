// The bin: keeps deleted runs until they are removed permanently, by age or by hand. Removing deletes their rows first,
// then the checkpoints beside the database: only each run's own folder.
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
  std::size_t finished = 0;           // other runs, whose deletion or import a killed process had left half done
  std::int64_t freed_bytes = 0;       // of checkpoints
  FileSpace before, after;            // of the database
  std::vector<std::string> problems;  // folders that could not be removed, and why; tried again next time
};

// The runs in the bin, oldest first. Reads the disk.
std::vector<BinnedRun> runs_in_bin(RunStore& store);

// Permanently removes the runs that were deleted before `deleted_before`. Blocks for seconds if they are long. Throws
// StorageError; then they are in no list, and a later call removes the rest of them, as it does when `keep_deleting`
// ends it.
EmptiedBin empty_bin(RunStore& store, double deleted_before, const KeepDeleting& keep_deleting = {});

// "Permanently deleted 3 runs, 1.2 GB of checkpoints freed"
std::string emptied_text(const EmptiedBin& emptied);

// "runs.db has 12.3 MB now; it had 663 MB", and why it isn't smaller if much of it is unused.
std::string space_text(const std::filesystem::path& file, const EmptiedBin& emptied);

}  // namespace stepladder
