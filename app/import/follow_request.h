// What is followed, and the rules that the followers of journals and of other sources share.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct FollowRequest {
  std::vector<std::filesystem::path> paths;  // journals, other trackers' stores, or folders of those
  std::string name;                          // of the runs; empty: as the script or the store calls them
  std::string step_key = {};                 // as in ImportOptions

  // Nobody reads on after what is there: this process owns no run.
  bool once = false;

  // The files are copies of another machine's, which grow while the machine can be reached. No process here owns their
  // runs, silence means nothing, and only `writers_are_gone` tells that they will not go on.
  bool is_far = false;
  std::string origin = {};                  // "far UID": which of the machine's runs they are of
  std::function<void(RunId)> created = {};  // in the transaction that creates a run, or first adds to one
};

struct FollowedRun {
  RunId run = 0;
  std::filesystem::path folder;
  std::int64_t ranks = 0;
  std::int64_t values_read = 0;    // by this process
  std::string format = "journal";  // an importer's id
  double newest_at = missing;      // unix seconds: when the newest value was logged, if another tracker's store says it
  bool ended = false;
};

// A bad piece is "not yet" for so long; and a writer that no process is known to be is gone after so long a silence.
inline constexpr std::chrono::seconds give_up_after(60);

// After a known writer has exited, what it left behind is read for so long.
inline constexpr std::chrono::seconds after_the_writer(2);

inline constexpr std::chrono::seconds between_writer_looks(2);

inline constexpr int deepest_followed_folder = 4;  // below a path that was named

}  // namespace stepladder
