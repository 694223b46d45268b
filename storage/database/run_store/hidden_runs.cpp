// Runs that no list shows: being written in slices, or being deleted.
#include "storage/database/column_values.h"
#include "storage/database/process.h"
#include "storage/database/removal.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store/run_store_impl.h"

namespace stepladder {
namespace {

void hide_for_deletion(Database& database, RunId run) {
  // A fork outlives its parent and stops naming it.
  Statement(database, "UPDATE runs SET parent_id = NULL WHERE parent_id = ?").bind(run).run();
  Statement(database, "DELETE FROM curation WHERE run_id = ?").bind(run).run();
  Statement hide(database, "UPDATE runs SET hidden = ?, owner_pid = ?, owner_start = ?, owner_boot = ? WHERE id = ?");
  bind_owner(hide.bind(static_cast<int>(Hidden::being_deleted)), this_process()).bind(run).run();
}

std::vector<RunId> being_deleted_here(Database& database) {
  Statement rows(database,
                 "SELECT id FROM runs WHERE hidden <> 0 AND hidden = ? AND owner_pid = ? AND owner_start IS ? "
                 "ORDER BY id");
  const ProcessIdentity own = this_process();
  rows.bind(static_cast<int>(Hidden::being_deleted)).bind(own.pid).bind(known(own.start));
  std::vector<RunId> runs;
  while (rows.step()) runs.push_back(rows.integer(0));
  return runs;
}

}  // namespace

RunId RunStore::create_hidden_run(const Run& run) {
  return insert_run(impl_->database, run, this_process(), Hidden::being_written);
}

void RunStore::show(std::span<const RunId> hidden_runs) {
  Transaction transaction(impl_->database);
  for (const RunId id : hidden_runs) {
    Statement update(impl_->database,
                     "UPDATE runs SET hidden = 0, owner_pid = NULL, owner_start = NULL, owner_boot = NULL WHERE id = ? "
                     "AND hidden = ?");
    update.bind(id).bind(static_cast<int>(Hidden::being_written)).run();
    if (impl_->database.changes() == 0)
      throw StorageError("another process has removed a run from " + file().string() + " while it was being written");
  }
  transaction.commit();
}

void RunStore::delete_hidden(std::span<const RunId> hidden_runs) {
  // A run that was created in a slice that failed isn't in the file, and its number may be another's by now.
  {
    Transaction transaction(impl_->database);
    Statement take(impl_->database, "UPDATE runs SET hidden = ? WHERE id = ? AND hidden = ? AND owner_pid = ?");
    for (const RunId id : hidden_runs) {
      take.bind(static_cast<int>(Hidden::being_deleted)).bind(id);
      take.bind(static_cast<int>(Hidden::being_written)).bind(this_process().pid).run();
    }
    transaction.commit();
  }
  delete_hidden_runs();
}

// Those of this process that are being deleted, also what an earlier attempt left.
void RunStore::delete_hidden_runs(const KeepDeleting& keep_deleting) {
  const std::vector<RunId> runs = being_deleted_here(impl_->database);
  if (runs.empty() || !delete_runs(impl_->database, runs, keep_deleting)) return;
  give_back_space(impl_->database);
}

std::vector<RunId> RunStore::empty_bin(double deleted_before, const NoteRuns& also, const KeepDeleting& keep_deleting) {
  Database& database = impl_->database;
  std::vector<RunId> gone;
  {
    Transaction transaction(database);
    {
      Statement rows(database,
                     "SELECT run_id FROM curation JOIN runs ON runs.id = run_id WHERE deleted_at < ? AND status NOT IN "
                     "('queued', 'running') AND hidden = 0 AND run_id NOT IN (SELECT parent_id FROM runs WHERE status "
                     "= 'queued' AND parent_id IS NOT NULL) ORDER BY run_id");
      rows.bind(deleted_before);
      while (rows.step()) gone.push_back(rows.integer(0));
    }
    std::vector<Run> runs;
    for (const RunId id : gone) {
      runs.push_back(*read_run(database, id));
      hide_for_deletion(database, id);
    }
    // Otherwise SQLite would reuse its number for the next run (see insert_run).
    if (!gone.empty() && gone.back() == database.integer("SELECT max(id) FROM runs"))
      set_setting("highest_run", std::to_string(gone.back()));
    if (!gone.empty() && also) also(runs);
    transaction.commit();
  }
  finish_deletions(keep_deleting);
  return gone;
}

}  // namespace stepladder
