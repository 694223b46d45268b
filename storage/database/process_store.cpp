// Which process owns which run, and what other processes ask of it. Every statement is short: others write meanwhile.
#include "storage/database/process_store.h"

#include <algorithm>
#include <set>

#include "storage/database/bin.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/events/left_events.h"
#include "storage/database/metrics/metric_store.h"
#include "storage/database/run_rows.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::string_view move_verb = "move";  // the others are those of RunRequest

// How a run is closed whose owner has exited.
struct Ending {
  DeadRun run;
  std::string reason;
  double last_at = missing;
};

Ending ending_of(Database& database, const DeadRun& run, const std::map<std::int64_t, std::string>& troubles) {
  Ending ending{.run = run};
  Statement last(database, "SELECT step, at FROM steps WHERE run_id = ? ORDER BY at_ms DESC, step DESC LIMIT 1",
                 run.id);
  const bool has_steps = last.step();
  if (has_steps) ending.last_at = last.real(1);
  ending.reason = fmt::format("the process that ran it (pid {}) has exited; {}", run.owner.pid,
                              has_steps ? fmt::format("last step {}", last.integer(0)) : "it recorded no step");
  if (const auto trouble = troubles.find(run.owner.pid); trouble != troubles.end())
    ending.reason += "; its last steps had waited to be stored, since " + trouble->second;
  return ending;
}

}  // namespace

std::vector<RunId> ProcessStore::runs_owned_by(const ProcessIdentity& owner) {
  return database_.integers(
      "SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ? AND owner_boot IS ? AND hidden = 0 ORDER BY id",
      owner.pid, known(owner.start), known(owner.boot));
}

std::optional<ProcessIdentity> ProcessStore::owner_of(RunId run) {
  Statement row(database_, "SELECT owner_pid, owner_start, owner_boot FROM runs WHERE id = ? AND owner_pid IS NOT NULL",
                run);
  if (!row.step()) return {};
  return ProcessIdentity{row.integer(0), row.integer(1), row.text(2)};
}

std::vector<Run> ProcessStore::runs_under_way() {
  Statement rows(database_,
                 "SELECT " + run_columns +
                     " FROM runs LEFT JOIN queue ON queue.run_id = runs.id WHERE status IN ('queued', 'running') AND " +
                     is_listed + " ORDER BY owner_pid, place IS NULL, place, created_at, id");
  return read_runs(database_, rows);
}

void ProcessStore::queue_again(RunId run, std::int64_t planned_steps) {
  Statement update(database_,
                   "UPDATE runs SET status = 'queued', planned_steps = ?, owner_pid = ?, owner_start = ?, "
                   "owner_boot = ? WHERE id = ? AND status NOT IN ('queued', 'running') AND hidden = 0");
  Transaction both(database_);
  bind_owner(update.bind(planned_steps), this_process()).bind(run).run();
  if (database_.changes() == 0) throw StorageError(fmt::format("run {} is still queued or running", run));
  forget_requests(database_, run);
  both.commit();
}

void ProcessStore::publish_queue(std::span<const QueuedRun> queue) {
  Transaction transaction(database_);
  const ProcessIdentity own = this_process();
  database_.run("DELETE FROM queue WHERE run_id IN (SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ?)",
                own.pid, known(own.start));
  for (std::size_t place = 0; place < queue.size(); ++place) {
    database_.run("INSERT OR REPLACE INTO queue (run_id, place, paused) SELECT id, ?, ? FROM runs WHERE id = ?",
                  static_cast<std::int64_t>(place), std::int64_t{queue[place].is_paused}, queue[place].run);
  }
  transaction.commit();
}

bool ProcessStore::is_paused(RunId run) {
  return database_.integer("SELECT paused FROM queue WHERE run_id = ?", run) != 0;
}

bool ProcessStore::others_have_written() {
  const std::int64_t now = database_.integer("PRAGMA data_version");
  return std::exchange(seen_version_, now) != now;
}

void ProcessStore::request(RunId run, const RunChange& change) {
  Statement insert(database_, "INSERT INTO requests (run_id, verb, place, at) VALUES (?, ?, ?, ?)");
  std::optional<std::int64_t> place;
  if (const auto* to = std::get_if<QueuePlace>(&change)) place = static_cast<std::int64_t>(to->place);
  insert.bind(run).bind(place ? move_verb : to_string(std::get<RunRequest>(change))).bind(place).bind(unix_now()).run();
}

std::vector<std::pair<RunId, RunChange>> ProcessStore::take_requests() {
  if (database_.integer("SELECT count(*) FROM requests") == 0) return {};  // the usual case takes no write lock
  std::vector<std::pair<RunId, RunChange>> taken;
  Transaction transaction(database_);
  const ProcessIdentity own = this_process();
  {
    Statement rows(database_,
                   "SELECT run_id, verb, place FROM requests JOIN runs ON runs.id = run_id "
                   "WHERE owner_pid = ? AND owner_start IS ? ORDER BY requests.id",
                   own.pid, known(own.start));
    while (rows.step()) {
      RunChange change = QueuePlace{.place = static_cast<std::size_t>(std::max<std::int64_t>(0, rows.integer(2)))};
      if (rows.text(1) != move_verb) change = run_request_from(rows.text(1));
      taken.emplace_back(rows.integer(0), change);
    }
  }
  database_.run("DELETE FROM requests WHERE run_id IN (SELECT id FROM runs WHERE owner_pid = ? AND owner_start IS ?)",
                own.pid, known(own.start));
  transaction.commit();
  return taken;
}

// Returns what was wrong with the database when their processes exited, by process id.
std::map<std::int64_t, std::string> ProcessStore::store_left_events() {
  left_behind_.clear();
  std::map<std::int64_t, std::string> troubles;
  for (const auto& left : LeftEvents::of_database(database_.file())) {
    const EventOrigin& origin = left->origin();
    if (!origin.why.empty()) troubles[origin.process.pid] = origin.why;
    std::set<RunId> missing_runs;
    std::size_t taken = 0;
    for (std::vector<RunEvent> events; left->next(events);) {
      Transaction transaction(database_);
      const WrittenEvents written = write_events(database_, events, origin.process);
      for (const RunId id : written.outdated) derived_.forget(id);
      transaction.commit();
      for (const RunId id : written.ended) metrics_.refresh(id);
      missing_runs.insert(written.missing.begin(), written.missing.end());
      taken += events.size();
    }
    const bool is_of_a_replaced_file = left->is_ring() && identity_of(database_.file()) != origin.file;
    if (left->is_whole() && (missing_runs.empty() || is_of_a_replaced_file)) {
      left->remove();
    } else if (!left->is_whole()) {
      left_behind_.push_back(
          fmt::format("{} is damaged; {} of its events are stored, and it is kept", left->file().string(), taken));
    } else {
      left_behind_.push_back(
          fmt::format("{} holds events of run {}, which isn't in {}; delete it if you don't need them",
                      left->file().string(), *missing_runs.begin(), database_.file().string()));
    }
  }
  return troubles;
}

int ProcessStore::close_dead_runs() {
  if (database_.read_only() || database_.file().empty()) return 0;
  const std::map<std::int64_t, std::string> troubles = store_left_events();
  std::vector<Ending> endings;  // before the transaction, since reading the steps of a long run takes a while
  for (const DeadRun& dead : dead_runs(database_, "status IN ('queued', 'running') AND hidden = 0"))
    endings.push_back(ending_of(database_, dead, troubles));
  std::vector<RunId> closed;
  if (!endings.empty()) {  // the usual case takes no write lock
    Transaction transaction(database_);
    for (const Ending& ending : endings) {
      const auto& [id, owner] = ending.run;
      // A run with steps has begun, though the process may have died before it stored when. Checks the owner again:
      // since the query above, another process may have closed or resumed the run.
      database_.run(
          "UPDATE runs SET status = 'interrupted', reason = ?, "
          "started_at = coalesce(started_at, (SELECT min(at) FROM steps WHERE run_id = runs.id)), "
          "ended_at = coalesce(?, started_at, created_at) WHERE id = ? "
          "AND status IN ('queued', 'running') AND owner_pid = ? AND owner_start IS ?",
          ending.reason, ending.last_at, id, owner.pid, known(owner.start));
      if (database_.changes() == 0) continue;
      closed.push_back(id);
      derived_.forget(id);
    }
    transaction.commit();
    for (const RunId id : closed) metrics_.refresh(id);
  }
  bin_.finish_a_moments_part();
  return static_cast<int>(closed.size());
}

}  // namespace stepladder
