// Takes in tables and logs (CSV, JSON lines) while they grow, each value exactly once, whoever is restarted.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/import/follow_rules.h"
#include "app/import/journal_follower.h"
#include "storage/database/run_store.h"
#include "storage/folder_watch.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Used by one thread, as its store. The importer that would import the file reads it. A reader that begins again reads
// from the file's start and leaves out what is stored: it counts and hashes what the importer tells, so a file whose
// beginning tells something else becomes another run, and one that was only written again goes on.
class TextFollower {
 public:
  // `tell` as for StoreFollower. `settle` and `take_in` too.
  TextFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> tell);
  ~TextFollower();

  void look();
  // With `joined`, the file's numbers complete that run, as in StoreFollower.
  void add(const std::filesystem::path& file, std::optional<RunId> joined = std::nullopt);

  // What a program prints whose run is known: its numbers and facts are added where nothing else knows better.
  struct Printed {
    RunId run = 0;
    ImportOptions options;
    std::function<double(std::int64_t)> written_at;  // unix seconds, of the byte at this place
  };
  void add(const std::filesystem::path& file, Printed printed);
  bool take_in();
  void settle(bool at_end);
  std::vector<FollowedRun> runs() const;

 private:
  using Clock = std::chrono::steady_clock;
  class File;

  void look_into(const std::filesystem::path& folder);
  void find_writers();

  RunStore& store_;
  const FollowRequest request_;
  const std::function<void(const std::string&)> tell_;
  FolderWatch folders_{deepest_followed_folder};
  std::set<std::filesystem::path> known_;
  std::vector<std::unique_ptr<File>> files_;
  Clock::time_point looked_for_writers_{};
};

}  // namespace stepladder
