#include "storage/database/hidden_runs.h"

#include "storage/database/database.h"
#include "storage/database/process.h"
#include "storage/database/removal.h"
#include "storage/database/run_rows.h"

namespace stepladder {

RunId HiddenRuns::create(const Run& run) {
  return insert_run(database_, run, this_process(), Hidden::being_written);
}

void HiddenRuns::show(std::span<const RunId> hidden_runs) {
  Transaction transaction(database_);
  for (const RunId id : hidden_runs) {
    database_.run(
        "UPDATE runs SET hidden = 0, owner_pid = NULL, owner_start = NULL, owner_boot = NULL WHERE id = ? "
        "AND hidden = ?",
        id, static_cast<int>(Hidden::being_written));
    if (database_.changes() == 0)
      throw StorageError("another process has removed a run from " + database_.file().string() +
                         " while it was being written");
  }
  transaction.commit();
}

void HiddenRuns::remove(std::span<const RunId> hidden_runs) {
  // A run that was created in a slice that failed isn't in the file, and its number may be another's by now.
  {
    Transaction transaction(database_);
    Statement take(database_, "UPDATE runs SET hidden = ? WHERE id = ? AND hidden = ? AND owner_pid = ?");
    for (const RunId id : hidden_runs) {
      take.bind(static_cast<int>(Hidden::being_deleted)).bind(id);
      take.bind(static_cast<int>(Hidden::being_written)).bind(this_process().pid).run();
    }
    transaction.commit();
  }
  delete_own_hidden_runs(database_);
}

}  // namespace stepladder
