#include "storage/database/bin.h"

#include <utility>

#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/process.h"
#include "storage/database/removal.h"
#include "storage/database/run_rows.h"
#include "storage/database/settings.h"

namespace stepladder {
namespace {

constexpr int pieces_in_a_moment = 300;  // of a deletion: 600,000 steps, half a second

void hide_for_deletion(Database& database, RunId run) {
  // A fork outlives its parent and stops naming it.
  database.run("UPDATE runs SET parent_id = NULL WHERE parent_id = ?", run);
  database.run("DELETE FROM curation WHERE run_id = ?", run);
  Statement hide(database, "UPDATE runs SET hidden = ?, owner_pid = ?, owner_start = ?, owner_boot = ? WHERE id = ?");
  bind_owner(hide.bind(static_cast<int>(Hidden::being_deleted)), this_process()).bind(run).run();
}

}  // namespace

std::vector<RunId> Bin::empty(double deleted_before, const NoteRuns& also, const KeepDeleting& keep_deleting) {
  std::vector<RunId> gone;
  {
    Transaction transaction(database_);
    gone = database_.integers(
        "SELECT run_id FROM curation JOIN runs ON runs.id = run_id WHERE deleted_at < ? AND status NOT IN "
        "('queued', 'running') AND hidden = 0 AND run_id NOT IN (SELECT parent_id FROM runs WHERE status "
        "= 'queued' AND parent_id IS NOT NULL) ORDER BY run_id",
        deleted_before);
    std::vector<Run> runs;
    for (const RunId id : gone) {
      runs.push_back(*read_run(database_, id));
      hide_for_deletion(database_, id);
    }
    // Otherwise SQLite would reuse its number for the next run (see insert_run).
    if (!gone.empty() && gone.back() == database_.integer("SELECT max(id) FROM runs"))
      Settings(database_).set("highest_run", std::to_string(gone.back()));
    if (!gone.empty() && also) also(runs);
    transaction.commit();
  }
  finish_deletions(keep_deleting);
  return gone;
}

std::size_t Bin::left_to_delete() {
  return dead_runs(database_, "hidden <> 0").size();
}

void Bin::take_over() {
  const std::vector<DeadRun> dead = dead_runs(database_, "hidden <> 0");
  if (dead.empty()) return;
  Transaction transaction(database_);
  for (const DeadRun& run : dead) {
    // Checks the owner again: another process may have begun to delete it.
    Statement take(database_,
                   "UPDATE runs SET hidden = ?, owner_pid = ?, owner_start = ?, owner_boot = ? WHERE id = ? AND "
                   "hidden <> 0 AND owner_pid IS ? AND owner_start IS ?");
    bind_owner(take.bind(static_cast<int>(Hidden::being_deleted)), this_process());
    take.bind(run.id).bind(run.owner.pid).bind(known(run.owner.start)).run();
  }
  transaction.commit();
}

void Bin::finish_deletions(const KeepDeleting& keep_deleting) {
  take_over();
  delete_own_hidden_runs(database_, keep_deleting);
}

void Bin::finish_a_moments_part() {
  if (std::exchange(has_deleted_left_, true)) return;
  try {  // a later opening tries again what fails here
    finish_deletions([pieces = 0](std::size_t) mutable { return ++pieces <= pieces_in_a_moment; });
    if (database_.integer("SELECT count(*) FROM runs WHERE hidden = 2") == 0) return;
    Statement release(database_,
                      "UPDATE runs SET owner_pid = 0, owner_start = NULL, owner_boot = NULL WHERE hidden = 2 AND "
                      "owner_pid = ? AND owner_start IS ?");  // the rest is nobody's again
    const ProcessIdentity own = this_process();
    release.bind(own.pid).bind(known(own.start)).run();
  } catch (const StorageError&) {
  }
}

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
