// Runs that are over but whose rows are too many for one transaction (imports): written in pieces, and shown at the
// end. A part of RunStore, which has its threads, locks and errors.
#pragma once

#include <span>

#include "storage/records.h"

namespace stepladder {

class Database;

// Such runs are in no list and owned by this process while `create`, RunStore::append_steps and RunStore::update_run
// write them, in pieces of RunStore::in_slices. If the process exits before `show` or `remove`, Bin::finish_deletions
// of a later one removes them.
class HiddenRuns {
 public:
  explicit HiddenRuns(Database& database) : database_(database) {}

  RunId create(const Run& run);
  void show(std::span<const RunId> hidden_runs);  // makes them visible, all in one transaction
  void remove(std::span<const RunId> hidden_runs);

 private:
  Database& database_;
};

}  // namespace stepladder
