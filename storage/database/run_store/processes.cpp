// What processes tell each other through the file, and what is done for those that have exited.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "storage/database/column_values.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/events/left_events.h"
#include "storage/database/process.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store/run_store_impl.h"

namespace stepladder {
namespace {

constexpr int pieces_at_opening = 300;  // of a deletion: 600,000 steps, half a second

constexpr std::string_view move_verb = "move";  // the others are those of RunRequest

// A run whose owner has exited.
struct DeadRun {
  RunId id;
  ProcessIdentity owner;
  std::string reason;  // why it is closed
  double last_at = missing;
};

std::vector<DeadRun> dead_runs(Database& database, const std::string& condition) {
  Statement rows(
      database, "SELECT id, owner_pid, owner_start, owner_boot FROM runs WHERE owner_pid IS NOT NULL AND " + condition);
  std::vector<DeadRun> dead;
  while (rows.step()) {
    ProcessIdentity owner{.pid = rows.integer(1), .start = rows.integer(2), .boot = rows.text(3)};
    if (!is_alive(owner)) dead.push_back({rows.integer(0), std::move(owner), {}});
  }
  return dead;
}

}  // namespace

void RunStore::tell_queue(std::span<const QueuedRun> queue) {
  Transaction transaction(impl_->database);
  const ProcessIdentity own = this_process();
  Statement old(impl_->database,
                "DELETE FROM queue WHERE run_id IN (SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ?)");
  old.bind(own.pid).bind(known(own.start)).run();
  for (std::size_t place = 0; place < queue.size(); ++place) {
    Statement insert(impl_->database,
                     "INSERT OR REPLACE INTO queue (run_id, place, paused) SELECT id, ?, ? FROM runs WHERE id = ?");
    insert.bind(static_cast<std::int64_t>(place)).bind(std::int64_t{queue[place].is_paused});
    insert.bind(queue[place].run).run();
  }
  transaction.commit();
}

bool RunStore::is_paused(RunId run) {
  Statement row(impl_->database, "SELECT paused FROM queue WHERE run_id = ?");
  return row.bind(run).step() && row.integer(0) != 0;
}

bool RunStore::others_have_written() {
  const std::int64_t now = impl_->database.integer("PRAGMA data_version");
  return std::exchange(impl_->seen_version, now) != now;
}

void RunStore::request(RunId run, const RunChange& change) {
  Statement insert(impl_->database, "INSERT INTO requests (run_id, verb, place, at) VALUES (?, ?, ?, ?)");
  std::optional<std::int64_t> place;
  if (const auto* to = std::get_if<QueuePlace>(&change)) place = static_cast<std::int64_t>(to->place);
  insert.bind(run).bind(place ? move_verb : to_string(std::get<RunRequest>(change))).bind(place).bind(unix_now()).run();
}

std::vector<std::pair<RunId, RunChange>> RunStore::take_requests() {
  Database& database = impl_->database;
  if (database.integer("SELECT count(*) FROM requests") == 0) return {};  // the usual case takes no write lock
  std::vector<std::pair<RunId, RunChange>> taken;
  Transaction transaction(database);
  const ProcessIdentity own = this_process();
  {
    Statement rows(database,
                   "SELECT run_id, verb, place FROM requests JOIN runs ON runs.id = run_id "
                   "WHERE owner_pid = ? AND owner_start IS ? ORDER BY requests.id");
    rows.bind(own.pid).bind(known(own.start));
    while (rows.step()) {
      RunChange change = QueuePlace{.place = static_cast<std::size_t>(std::max<std::int64_t>(0, rows.integer(2)))};
      if (rows.text(1) != move_verb) change = run_request_from(rows.text(1));
      taken.emplace_back(rows.integer(0), change);
    }
  }
  Statement done(database,
                 "DELETE FROM requests WHERE run_id IN (SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ?)");
  done.bind(own.pid).bind(known(own.start)).run();
  transaction.commit();
  return taken;
}

// Returns what was wrong with the database when their processes exited, by process id.
std::map<std::int64_t, std::string> RunStore::take_in_left_events() {
  impl_->left_behind.clear();
  std::map<std::int64_t, std::string> troubles;
  for (const auto& left : LeftEvents::of_database(file())) {
    const EventOrigin& origin = left->origin();
    if (!origin.why.empty()) troubles[origin.process.pid] = origin.why;
    std::set<RunId> missing_runs;
    std::size_t taken = 0;
    for (std::vector<RunEvent> events; left->next(events);) {
      Transaction transaction(impl_->database);
      const WrittenEvents written = write_events(impl_->database, events, origin.process);
      for (const RunId id : written.outdated) impl_->derived.forget(id);
      transaction.commit();
      for (const RunId id : written.ended) refresh(id);
      missing_runs.insert(written.missing.begin(), written.missing.end());
      taken += events.size();
    }
    const bool is_of_a_replaced_file = left->is_ring() && identity_of(file()) != origin.file;
    if (left->is_whole() && (missing_runs.empty() || is_of_a_replaced_file)) {
      left->remove();
    } else if (!left->is_whole()) {
      impl_->left_behind.push_back(left->file().string() + " is damaged; " + std::to_string(taken) +
                                   " of its events are stored, and it is kept");
    } else {
      impl_->left_behind.push_back(left->file().string() + " holds events of run " +
                                   std::to_string(*missing_runs.begin()) + ", which isn't in " + file().string() +
                                   "; delete it if you don't need them");
    }
  }
  return troubles;
}

const std::vector<std::string>& RunStore::left_behind() const {
  return impl_->left_behind;
}

int RunStore::close_dead_runs() {
  Database& database = impl_->database;
  if (database.read_only() || database.file().empty()) return 0;
  const std::map<std::int64_t, std::string> troubles = take_in_left_events();
  std::vector<DeadRun> dead = dead_runs(database, "status IN ('queued', 'running') AND hidden = 0");
  // Before the transaction, since reading the steps of a long run takes a while.
  for (DeadRun& run : dead) {
    run.reason = "the process that ran it (pid " + std::to_string(run.owner.pid) + ") has exited; ";
    Statement last(database, "SELECT step, at FROM steps WHERE run_id = ? ORDER BY at_ms DESC, step DESC LIMIT 1");
    last.bind(run.id);
    if (last.step()) {
      run.reason += "last step " + std::to_string(last.integer(0));
      run.last_at = last.real(1);
    } else {
      run.reason += "it recorded no step";
    }
    if (const auto trouble = troubles.find(run.owner.pid); trouble != troubles.end())
      run.reason += "; its last steps had waited to be stored, since " + trouble->second;
  }
  std::vector<RunId> closed;
  if (!dead.empty()) {  // the usual case takes no write lock
    Transaction transaction(database);
    for (const auto& [id, owner, reason, last_at] : dead) {
      // A run with steps has begun, though the process may have died before it stored when. Checks the owner again:
      // since the query above, another process may have closed or resumed the run.
      Statement update(database,
                       "UPDATE runs SET status = 'interrupted', reason = ?, "
                       "started_at = coalesce(started_at, (SELECT min(at) FROM steps WHERE run_id = runs.id)), "
                       "ended_at = coalesce(?, started_at, created_at) WHERE id = ? "
                       "AND status IN ('queued', 'running') AND owner_pid = ? AND owner_start IS ?");
      update.bind(reason).bind(last_at).bind(id).bind(owner.pid).bind(known(owner.start)).run();
      if (database.changes() == 0) continue;
      closed.push_back(id);
      impl_->derived.forget(id);
    }
    transaction.commit();
    for (const RunId id : closed) refresh(id);
  }
  if (std::exchange(impl_->has_deleted_left, true)) return static_cast<int>(closed.size());
  try {  // what a moment is enough for; a later opening tries again what fails here
    finish_deletions([pieces = 0](std::size_t) mutable { return ++pieces <= pieces_at_opening; });
    if (impl_->database.integer("SELECT count(*) FROM runs WHERE hidden = 2") > 0) {  // the rest is nobody's again
      Statement release(impl_->database,
                        "UPDATE runs SET owner_pid = 0, owner_start = NULL, owner_boot = NULL WHERE hidden = 2 AND "
                        "owner_pid = ? AND owner_start IS ?");
      const ProcessIdentity own = this_process();
      release.bind(own.pid).bind(known(own.start)).run();
    }
  } catch (const StorageError&) {
  }
  return static_cast<int>(closed.size());
}

std::size_t RunStore::left_to_delete() {
  return dead_runs(impl_->database, "hidden <> 0").size();
}

void RunStore::take_over_deletions() {
  Database& database = impl_->database;
  const std::vector<DeadRun> dead = dead_runs(database, "hidden <> 0");
  if (dead.empty()) return;
  Transaction transaction(database);
  for (const DeadRun& run : dead) {
    // Checks the owner again: another process may have begun to delete it.
    Statement take(database,
                   "UPDATE runs SET hidden = ?, owner_pid = ?, owner_start = ?, owner_boot = ? WHERE id = ? AND "
                   "hidden <> 0 AND owner_pid IS ? AND owner_start IS ?");
    bind_owner(take.bind(static_cast<int>(Hidden::being_deleted)), this_process());
    take.bind(run.id).bind(run.owner.pid).bind(known(run.owner.start)).run();
  }
  transaction.commit();
}

void RunStore::finish_deletions(const KeepDeleting& keep_deleting) {
  take_over_deletions();
  delete_hidden_runs(keep_deleting);
}

}  // namespace stepladder
