// Runs and ladders, their names, and what users have marked.
#include <utility>

#include "storage/bounded_text.h"
#include "storage/checked_text.h"
#include "storage/database/column_values.h"
#include "storage/database/process.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store/run_store_impl.h"

namespace stepladder {
namespace {

Ladder bounded_ladder(Ladder ladder) {
  ladder.name = bounded(std::move(ladder.name), longest_name);
  ladder.source_path = bounded(std::move(ladder.source_path), longest_line);
  ladder.notes = bounded(std::move(ladder.notes), longest_note);
  return ladder;
}

std::vector<Run> read_all(const Database& database, Statement& rows) {
  std::vector<Run> runs;
  while (rows.step()) runs.push_back(read_run(database, rows));
  return runs;
}

}  // namespace

LadderId RunStore::create_ladder(const Ladder& ladder) {
  Statement insert(impl_->database,
                   "INSERT INTO ladders (name, source, source_path, notes, created_at, uid) VALUES (?, ?, ?, ?, ?, "
                   "coalesce(?, lower(hex(randomblob(16)))))");
  const Ladder kept = bounded_ladder(ladder);
  insert.bind(kept.name).bind(known(kept.source)).bind(known(kept.source_path)).bind(known(kept.notes));
  insert.bind(is_missing(ladder.created_at) ? unix_now() : ladder.created_at).bind(known(ladder.uid)).run();
  return impl_->database.last_insert_id();
}

std::vector<Ladder> RunStore::ladders() {
  Statement rows(impl_->database,
                 "SELECT id, name, source, source_path, notes, created_at, uid FROM ladders WHERE "
                 "NOT EXISTS (SELECT 1 FROM runs WHERE ladder_id = ladders.id) OR EXISTS (SELECT 1 FROM runs WHERE "
                 "ladder_id = ladders.id AND " +
                     is_listed + ") ORDER BY created_at, id");
  std::vector<Ladder> ladders;
  while (rows.step())
    ladders.push_back(bounded_ladder({.id = rows.integer(0),
                                      .uid = Uid::from(rows.text(6)).value_or(Uid()).text(),
                                      .name = rows.text(1),
                                      .source = rows.text(2),
                                      .source_path = rows.text(3),
                                      .notes = rows.text(4),
                                      .created_at = rows.real(5)}));
  return ladders;
}

void RunStore::rename_ladder(LadderId ladder, const std::string& name) {
  Statement(impl_->database, "UPDATE ladders SET name = ? WHERE id = ?")
      .bind(bounded(name, longest_name))
      .bind(ladder)
      .run();
}

RunId RunStore::create_run(const Run& run) {
  return insert_run(impl_->database, run, is_over(run.status) ? std::nullopt : std::optional(run_owner()));
}

void RunStore::update_run(const Run& run) {
  stepladder::update_run(impl_->database, run);
  impl_->derived.forget(run.id);
}

void RunStore::queue_again(RunId run, std::int64_t planned_steps) {
  Statement update(impl_->database,
                   "UPDATE runs SET status = 'queued', planned_steps = ?, owner_pid = ?, owner_start = ?, "
                   "owner_boot = ? WHERE id = ? AND status NOT IN ('queued', 'running') AND hidden = 0");
  Transaction both(impl_->database);
  bind_owner(update.bind(planned_steps), this_process()).bind(run).run();
  if (impl_->database.changes() == 0) throw StorageError("run " + std::to_string(run) + " is still queued or running");
  forget_requests(impl_->database, run);
  both.commit();
}

void RunStore::rename_run(RunId run, const std::string& name) {
  Statement(impl_->database, "UPDATE runs SET name = ? WHERE id = ?").bind(bounded(name, longest_name)).bind(run).run();
}

std::vector<Run> RunStore::runs() {
  Statement rows(impl_->database,
                 "SELECT " + run_columns + " FROM runs WHERE " + is_listed + " ORDER BY created_at, id");
  return read_all(impl_->database, rows);
}

std::optional<Run> RunStore::run(RunId id) {
  Statement rows(impl_->database, "SELECT " + run_columns + " FROM runs WHERE id = ? AND hidden = 0");
  rows.bind(id);
  if (!rows.step()) return std::nullopt;
  return read_run(impl_->database, rows);
}

Run RunStore::existing_run(RunId id) {
  std::optional<Run> found = run(id);
  if (!found) {
    throw MissingRun("Run " + std::to_string(id) +
                     " is no longer in the database: somebody has emptied the bin that it was in.");
  }
  return std::move(*found);
}

std::vector<Run> RunStore::runs_of(LadderId ladder) {
  Statement rows(impl_->database, "SELECT " + run_columns + " FROM runs WHERE ladder_id = ? AND " + is_listed +
                                      " ORDER BY rung, repeat, id");
  rows.bind(ladder);
  return read_all(impl_->database, rows);
}

std::vector<RunId> RunStore::runs_owned_by(const ProcessIdentity& owner) {
  Statement rows(impl_->database,
                 "SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ? AND owner_boot IS ? AND hidden = 0 "
                 "ORDER BY id");
  bind_owner(rows, owner);
  std::vector<RunId> runs;
  while (rows.step()) runs.push_back(rows.integer(0));
  return runs;
}

std::vector<Run> RunStore::runs_under_way() {
  Statement rows(impl_->database,
                 "SELECT " + run_columns +
                     " FROM runs LEFT JOIN queue ON queue.run_id = runs.id WHERE status IN ('queued', 'running') AND " +
                     is_listed + " ORDER BY owner_pid, place IS NULL, place, created_at, id");
  return read_all(impl_->database, rows);
}

std::map<RunId, Curation> RunStore::curations() {
  Statement rows(impl_->database, "SELECT run_id, tags, note, pinned, archived, deleted_at FROM curation");
  std::map<RunId, Curation> curations;
  while (rows.step()) {
    curations[rows.integer(0)] = {.tags = tags_from(bounded(rows.text(1), longest_line)),
                                  .note = bounded(rows.text(2), longest_note),
                                  .pinned = rows.integer(3) != 0,
                                  .archived = rows.integer(4) != 0,
                                  .deleted_at = rows.real(5)};
  }
  return curations;
}

void RunStore::curate(RunId run, const Curation& curation) {
  Statement write(impl_->database,
                  "INSERT INTO curation (run_id, tags, note, pinned, archived, deleted_at) VALUES (?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (run_id) DO UPDATE SET tags = excluded.tags, note = excluded.note, "
                  "pinned = excluded.pinned, archived = excluded.archived, deleted_at = excluded.deleted_at");
  const std::string tags = bounded(tags_text(curation.tags), longest_line);
  const std::string note = bounded(curation.note, longest_note);
  write.bind(run).bind(known(tags)).bind(known(note));
  write.bind(curation.pinned ? 1 : 0).bind(curation.archived ? 1 : 0).bind(curation.deleted_at).run();
}

}  // namespace stepladder
