// Series of tries in the database (docs/database.md). A part of RunStore, which has its threads, locks and errors.
// Nothing here makes the program act: the command that a series runs is an order of this user (docs/security.md).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/try_records.h"

namespace stepladder {

class Database;

class TryStore {
 public:
  explicit TryStore(Database& database) : database_(database) {}

  std::vector<TrySeries> all();  // oldest first
  std::optional<TrySeries> latest_of(
      const std::string& checkout);         // the newest series of this folder that has begun well; else the newest
  std::vector<Try> tries(LadderId ladder);  // by number
  std::map<LadderId, std::set<std::int64_t>> kept();  // the tries that were kept, of each series
  std::vector<TryRun> runs(LadderId ladder);          // by place

  void save(const TrySeries& series);  // adds it, or replaces what it says
  void save(LadderId ladder, const Try& it);
  void add(LadderId ladder, const TryRun& run);
  void save(const StoredTries& tries);

 private:
  Database& database_;
};

}  // namespace stepladder
