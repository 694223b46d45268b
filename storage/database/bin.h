// Permanent deletion of runs that their user has put into the bin, and of what killed processes left half written or
// half deleted. A part of RunStore, which has its threads, locks and errors.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "storage/records.h"

namespace stepladder {

class Database;

// Called before each piece of a deletion; false leaves the rest to a later call.
using KeepDeleting = std::function<bool(std::size_t runs_left)>;

class Bin {
 public:
  explicit Bin(Database& database) : database_(database) {}

  // Permanently deletes runs that were put into the bin before `deleted_before`, with everything that belongs to them,
  // and returns them: hides them in one transaction, in which `also` may write something about them, then deletes their
  // rows in slices and gives back their space. If it can't (StorageError), a later call goes on. A run whose checkpoint
  // a queued fork needs stays. The caller removes files beside the database (app/runs/bin.h); no later run gets one of
  // their numbers. Also does what finish_deletions does.
  using NoteRuns = std::function<void(std::span<const Run>)>;
  std::vector<RunId> empty(double deleted_before, const NoteRuns& also = {}, const KeepDeleting& keep_deleting = {});

  // Runs that no list shows, since a process was killed while it deleted or imported them. They only take space;
  // deleting the rows of long ones takes minutes, so a window only does a moment's part of it.
  std::size_t left_to_delete();
  void finish_deletions(const KeepDeleting& keep_deleting = {});
  void finish_a_moments_part();  // once, however often it is called; never throws

 private:
  void take_over();

  Database& database_;
  bool has_deleted_left_ = false;  // what killed deletions left
};

// Runs that are over but whose rows are too many for one transaction (imports): written in pieces, and shown at the
// end. A part of RunStore, which has its threads, locks and errors.
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
