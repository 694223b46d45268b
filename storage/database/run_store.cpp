#include "storage/database/run_store.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "storage/bounded_text.h"
#include "storage/damaged_file.h"
#include "storage/database/attachment_rows.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/derived/derived.h"
#include "storage/database/events/event_rows.h"
#include "storage/database/events/left_events.h"
#include "storage/database/process.h"
#include "storage/database/removal.h"
#include "storage/database/rescue/lost_steps.h"
#include "storage/database/rescue/write_ahead_log.h"
#include "storage/database/run_rows.h"
#include "storage/database/schema.h"
#include "storage/database/slices.h"
#include "storage/database/step_rows.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view move_verb = "move";  // the others are those of RunRequest

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

// SQLite would drop committed transactions without a word.
const fs::path& with_sound_log(const fs::path& file) {
  const std::string damage = damage_of_write_ahead_log(file);
  if (!damage.empty()) throw DamagedFile(file, damage);
  return file;
}

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

Overview of_quantity(Overview overview, Quantity quantity) {
  overview.quantity = quantity;
  return overview;
}

}  // namespace

struct RunStore::Impl {
  explicit Impl(Database::InMemory in_memory) : database(in_memory) { prepare_schema(database); }
  Impl(const fs::path& path, Mode mode)
      : database(with_sound_log(path),
                 mode == Mode::read_only ? Database::Mode::read_only : Database::Mode::read_write) {
    prepare_schema(database);
  }

  Database database;
  Derived derived{database};
  MetricStore metrics{database, derived};
  FollowStore following{database, derived};
  ViewStore views{database};
  TraceStore traces{database};
  MachineStore machines{database};
  std::vector<std::string> left_behind;
  std::int64_t seen_version = 0;  // of PRAGMA data_version
};

RunStore::RunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore& RunStore::operator=(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

RunStore RunStore::open(const fs::path& file, Mode mode) {
  return RunStore(std::make_unique<Impl>(file, mode));
}

RunStore RunStore::in_memory() {
  return RunStore(std::make_unique<Impl>(Database::InMemory()));
}

LadderId RunStore::create_ladder(const Ladder& ladder) {
  Statement insert(impl_->database,
                   "INSERT INTO ladders (name, source, source_path, notes, created_at, uid) VALUES (?, ?, ?, ?, ?, "
                   "coalesce(?, lower(hex(randomblob(16)))))");
  const Ladder kept = bounded_ladder(ladder);
  insert.bind(kept.name).bind(known(kept.source)).bind(known(kept.source_path)).bind(known(kept.notes));
  insert.bind(is_missing(ladder.created_at) ? unix_now() : ladder.created_at).bind(known(ladder.uid)).run();
  return impl_->database.last_insert_id();
}

RunId RunStore::create_run(const Run& run) {
  return insert_run(impl_->database, run, is_over(run.status) ? std::nullopt : std::optional(run_owner()));
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

RecordedSteps RunStore::recorded_steps(RunId id) {
  RecordedSteps recorded;
  for (const char* table : {"steps", "superseded_steps"}) {
    Statement rows(impl_->database,
                   "SELECT count(*), coalesce(max(step), 0) FROM " + std::string(table) + " WHERE run_id = ?");
    rows.bind(id);
    rows.step();
    recorded.records += rows.integer(0);
    recorded.last_step = std::max(recorded.last_step, rows.integer(1));
  }
  return recorded;
}

MissingSteps RunStore::missing_steps(RunId id, std::int64_t first, std::int64_t last) {
  return stepladder::missing_steps(impl_->database, id, first, last);
}

void RunStore::queue_again(RunId run, std::int64_t planned_steps) {
  Statement update(impl_->database,
                   "UPDATE runs SET status = 'queued', planned_steps = ?, owner_pid = ?, owner_start = ?, "
                   "owner_boot = ? WHERE id = ? AND status NOT IN ('queued', 'running') AND hidden = 0");
  bind_owner(update.bind(planned_steps), this_process()).bind(run).run();
  if (impl_->database.changes() == 0) throw StorageError("run " + std::to_string(run) + " is still queued or running");
}

std::vector<RunId> RunStore::apply(std::span<const RunEvent> events) {
  if (events.empty()) return {};
  const auto counted = count_steps_of_finished(impl_->database, events);
  Transaction transaction(impl_->database);
  const WrittenEvents written = write_events(impl_->database, events, std::nullopt, counted);
  for (const RunId id : written.outdated) impl_->derived.forget(id);
  transaction.commit();
  // After the commit, since reading the steps of a long run takes a while and others want to write too.
  for (const RunId id : written.ended) refresh(id);
  return written.missing;
}

// Another process may have deleted the run since the transaction that ended it.
void RunStore::refresh(RunId id) {
  try {
    if (const auto ended = run(id)) impl_->derived.refresh(*ended);
    impl_->metrics.of_run(id);
  } catch (const StorageError&) {  // only a cache: computed when somebody asks for it
  }
}

RunId RunStore::insert_finished(Run run, std::span<const StepRecord> steps) {
  if (!is_over(run.status)) run.status = RunStatus::finished;
  Transaction transaction(impl_->database);
  run.id = insert_run(impl_->database, run, std::nullopt);
  insert_steps(impl_->database, run.id, steps);
  transaction.commit();
  impl_->derived.refresh(run);
  return run.id;
}

void RunStore::append_steps(RunId run, std::span<const StepRecord> steps) {
  insert_steps(impl_->database, run, steps);
  impl_->derived.forget(run);
}

void RunStore::update_run(const Run& run) {
  stepladder::update_run(impl_->database, run);
  impl_->derived.forget(run.id);
}

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
void RunStore::delete_hidden_runs() {
  const std::vector<RunId> runs = being_deleted_here(impl_->database);
  if (runs.empty()) return;
  delete_runs(impl_->database, runs);
  give_back_space(impl_->database);
}

void RunStore::in_slices(const std::function<bool()>& piece) {
  stepladder::in_slices(impl_->database, piece);
}

void RunStore::in_one_transaction(const std::function<void()>& work) {
  Transaction transaction(impl_->database);
  work();
  transaction.commit();
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
                                      .uid = rows.text(6),
                                      .name = rows.text(1),
                                      .source = rows.text(2),
                                      .source_path = rows.text(3),
                                      .notes = rows.text(4),
                                      .created_at = rows.real(5)}));
  return ladders;
}

std::vector<Run> RunStore::runs() {
  Statement rows(impl_->database,
                 "SELECT " + run_columns + " FROM runs WHERE " + is_listed + " ORDER BY created_at, id");
  return read_all(impl_->database, rows);
}

std::vector<Run> RunStore::runs_under_way() {
  Statement rows(impl_->database,
                 "SELECT " + run_columns +
                     " FROM runs LEFT JOIN queue ON queue.run_id = runs.id WHERE status IN ('queued', 'running') AND " +
                     is_listed + " ORDER BY owner_pid, place IS NULL, place, created_at, id");
  return read_all(impl_->database, rows);
}

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

Series RunStore::series(RunId id) {
  return read_series(impl_->database, id);
}

Series RunStore::series(RunId id, std::int64_t first_step, std::int64_t last_step) {
  return read_series(impl_->database, id, {first_step, last_step});
}

Series RunStore::excerpt(RunId id, std::int64_t most) {
  const auto of = run(id);
  if (!of) return {};
  const Summary whole = summary(*of);
  if (whole.steps <= most) return series(id);
  std::int64_t block = 256;
  while (block * whole.steps < 256 * (whole.last_step - whole.first_step)) block *= 2;  // a log of every tenth step
  std::int64_t stride = block;
  while (stride * most < block * whole.steps) stride *= 2;
  std::int64_t begin = whole.first_step / stride * stride;
  Series found;
  do {
    begin += stride;
    found = series(id, whole.first_step, begin - stride + block - 1);
  } while (std::ssize(found.step) < whole.warmup_steps && begin <= whole.last_step);
  for (; begin <= whole.last_step; begin += stride) {
    StepReader reader(impl_->database, id, {begin, begin + block - 1});
    for (std::vector<StepReader::Row> rows; reader.read(rows);)
      for (const StepReader::Row& row : rows) found.append(row.step);
  }
  return found;
}

Overview RunStore::overview(RunId id, Quantity quantity) {
  if (!is_field(quantity)) return of_quantity(impl_->metrics.overview(id, to_string(quantity)), quantity);
  const auto run = read_run(impl_->database, id);
  return run ? impl_->derived.overview(*run, quantity) : Overview{.quantity = quantity};
}

Overview RunStore::overview(RunId id, Quantity quantity, std::int64_t first_step, std::int64_t last_step,
                            std::size_t columns) {
  if (!is_field(quantity))
    return of_quantity(impl_->metrics.overview(id, to_string(quantity), first_step, last_step, columns), quantity);
  const auto run = read_run(impl_->database, id);
  if (!run) return {.quantity = quantity};
  return impl_->derived.overview(*run, quantity, {first_step, last_step}, columns);
}

void RunStore::for_steps(RunId id, const UseSteps& use) {
  StepReader reader(impl_->database, id, {}, StepReader::Parts::read);
  std::vector<StepRecord> steps;
  for (std::vector<StepReader::Row> rows; reader.read(rows);) {
    steps.clear();
    for (const StepReader::Row& row : rows) steps.push_back(row.step);
    use(steps);
  }
}

ViewStore& RunStore::views() {
  return impl_->views;
}

TraceStore& RunStore::traces() {
  return impl_->traces;
}

MachineStore& RunStore::machines() {
  return impl_->machines;
}

MetricStore& RunStore::metrics() {
  return impl_->metrics;
}

FollowStore& RunStore::following() {
  return impl_->following;
}

Summary RunStore::summary(const Run& run) {
  if (is_over(run.status)) {
    if (const auto kept = impl_->derived.kept(run)) return *kept;
  }
  return impl_->derived.make(run);
}

std::vector<RunAndSummary> RunStore::runs_with_summaries() {
  std::vector<RunAndSummary> all;
  std::vector<std::size_t> to_make;
  {
    Statement rows(impl_->database, "SELECT " + run_columns + ", " + Derived::summary_columns +
                                        " FROM runs LEFT JOIN summaries ON run_id = runs.id AND " +
                                        Derived::counts_for_run + " WHERE " + is_listed +
                                        " ORDER BY created_at, runs.id");
    while (rows.step()) {
      const bool is_kept = !rows.is_null(run_column_count);
      if (!is_kept) to_make.push_back(all.size());
      all.push_back({read_run(impl_->database, rows), is_kept ? Derived::read(rows, run_column_count) : Summary{}});
    }
  }
  for (const std::size_t i : to_make) all[i].summary = impl_->derived.make(all[i].run);
  return all;
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
  delete_dead_hidden_runs();
  return static_cast<int>(closed.size());
}

// A later opening tries again what fails here.
void RunStore::delete_dead_hidden_runs() {
  Database& database = impl_->database;
  const std::vector<DeadRun> dead = dead_runs(database, "hidden <> 0");
  if (dead.empty()) return;
  try {
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
    delete_hidden_runs();
  } catch (const StorageError&) {
  }
}

std::vector<SystemMetrics> RunStore::system_metrics(RunId id) {
  return read_system_metrics(impl_->database, id);
}

std::string RunStore::console(RunId id, std::size_t most) {
  return read_console(impl_->database, id, most);
}

StepProfile RunStore::profile(RunId id) {
  StepProfile profile = read_profile(impl_->database, id);
  return profile.steps > 0 ? profile : impl_->traces.profile_of_run(id);
}

std::vector<TextSample> RunStore::samples(RunId id) {
  return read_text_samples(impl_->database, id);
}

StepParts RunStore::mean_parts(const Run& run, std::int64_t warmup_steps) {
  return read_mean_parts(impl_->database, run.id, warmup_steps);
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

void RunStore::rename_run(RunId run, const std::string& name) {
  Statement(impl_->database, "UPDATE runs SET name = ? WHERE id = ?").bind(bounded(name, longest_name)).bind(run).run();
}

void RunStore::rename_ladder(LadderId ladder, const std::string& name) {
  Statement(impl_->database, "UPDATE ladders SET name = ? WHERE id = ?")
      .bind(bounded(name, longest_name))
      .bind(ladder)
      .run();
}

std::vector<RunId> RunStore::empty_bin(double deleted_before, const NoteRuns& also) {
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
  delete_hidden_runs();
  return gone;
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

std::optional<std::string> RunStore::setting(const std::string& key) {
  Statement rows(impl_->database, "SELECT value FROM settings WHERE key = ?");
  rows.bind(key);
  if (!rows.step()) return std::nullopt;
  return rows.text(0);
}

void RunStore::set_setting(const std::string& key, const std::string& value) {
  Statement(impl_->database, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)").bind(key).bind(value).run();
}

std::string RunStore::integrity_check() {
  Statement rows(impl_->database, "PRAGMA integrity_check");
  std::string found;
  while (rows.step()) found += (found.empty() ? "" : "; ") + rows.text(0);
  std::string lost;
  try {
    lost = lost_steps(impl_->database);
  } catch (const StorageError&) {  // damaged, as SQLite has found
  }
  if (lost.empty()) return found;
  return found == "ok" ? lost : found + "; " + lost;
}

RunStore::Space RunStore::space() {
  Database& database = impl_->database;
  std::error_code unknown;
  const auto bytes = fs::file_size(file(), unknown);
  const std::int64_t page = database.integer("PRAGMA page_size");
  return {.file_bytes = unknown ? 0 : static_cast<std::int64_t>(bytes),
          .content_bytes = page * database.integer("PRAGMA page_count"),
          .free_bytes = page * database.integer("PRAGMA freelist_count")};
}

void RunStore::compact() {
  Database& database = impl_->database;
  database.execute("PRAGMA locking_mode = EXCLUSIVE");
  try {
    // Succeeds only if no other connection has the file open, and keeps others out from here on.
    database.execute("PRAGMA journal_mode = DELETE");
  } catch (const StorageError& error) {
    database.execute("PRAGMA locking_mode = NORMAL");
    throw StorageError(file().string() + " can be compacted only while no other program has it open (" + error.what() +
                       ")");
  }
  std::string failure;
  try {
    database.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
  } catch (const StorageError& error) {
    failure = error.what();
  }
  database.execute("PRAGMA locking_mode = NORMAL");
  database.use_write_ahead_log();
  if (!failure.empty()) throw StorageError("nothing was changed: " + failure);
}

FileContents RunStore::back_up(const fs::path& out) {
  stepladder::back_up(impl_->database, out);
  return contents_of(out);
}

const fs::path& RunStore::file() const {
  return impl_->database.file();
}

void RunStore::set_patience(std::chrono::milliseconds patience) {
  impl_->database.set_patience(patience);
}

bool RunStore::read_only() const {
  return impl_->database.read_only();
}

fs::path default_database_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path file = variable("STEPLADDER_DB"); !file.empty()) return file;
  fs::path data = variable("XDG_DATA_HOME");
  if (!data.is_absolute()) {  // the XDG specification ignores relative ones
    fs::path home = variable("HOME");
    if (home.empty())
      if (const passwd* user = getpwuid(getuid())) home = user->pw_dir;
    data = home / ".local" / "share";
  }
  return data / "stepladder" / "stepladder.db";
}

}  // namespace stepladder
