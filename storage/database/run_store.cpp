#include "storage/database/run_store.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "storage/database/attachment_rows.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"
#include "storage/database/derived.h"
#include "storage/database/process.h"
#include "storage/database/run_rows.h"
#include "storage/database/schema.h"
#include "storage/database/step_rows.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

const std::string not_in_bin = "runs.id NOT IN (SELECT run_id FROM curation WHERE deleted_at IS NOT NULL)";

std::vector<Run> read_all(const Database& database, Statement& rows) {
  std::vector<Run> runs;
  while (rows.step()) runs.push_back(read_run(database, rows));
  return runs;
}

}  // namespace

struct RunStore::Impl {
  explicit Impl(Database::InMemory in_memory) : database(in_memory) { prepare_schema(database); }
  Impl(const fs::path& path, Mode mode)
      : database(path, mode == Mode::read_only ? Database::Mode::read_only : Database::Mode::read_write) {
    prepare_schema(database);
  }

  Database database;
  Derived derived{database};
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
                   "INSERT INTO ladders (name, source, source_path, notes, created_at) VALUES (?, ?, ?, ?, ?)");
  insert.bind(ladder.name).bind(known(ladder.source)).bind(known(ladder.source_path)).bind(known(ladder.notes));
  insert.bind(is_missing(ladder.created_at) ? unix_now() : ladder.created_at).run();
  return impl_->database.last_insert_id();
}

RunId RunStore::create_run(const Run& run) {
  return insert_run(impl_->database, run, is_over(run.status) ? std::nullopt : std::optional(this_process()));
}

void RunStore::queue_again(RunId run, std::int64_t planned_steps) {
  Statement update(impl_->database,
                   "UPDATE runs SET status = 'queued', planned_steps = ?, owner_pid = ?, owner_start = ?, "
                   "owner_boot = ? WHERE id = ? AND status NOT IN ('queued', 'running')");
  bind_owner(update.bind(planned_steps), this_process()).bind(run).run();
  if (impl_->database.changes() == 0) throw StorageError("run " + std::to_string(run) + " is still queued or running");
}

void RunStore::apply(std::span<const RunEvent> events) {
  if (events.empty()) return;
  Transaction transaction(impl_->database);
  std::map<RunId, bool> ended;  // the runs that these events change, and whether they end them
  for (const RunEvent& event : events) {
    if (const auto* started = std::get_if<RunStarted>(&event)) {
      start_run(impl_->database, *started);
      ended[started->run] = false;
    } else if (const auto* step = std::get_if<StepRecord>(&event)) {
      insert_step(impl_->database, step->run, *step);
      ended.try_emplace(step->run, false);
    } else if (const auto* end = std::get_if<RunEnded>(&event)) {
      end_run(impl_->database, *end);
      ended[end->run] = true;
    } else if (const auto* sample = std::get_if<SystemMetrics>(&event)) {
      insert_system_metrics(impl_->database, *sample);
    } else if (const auto* text = std::get_if<TextSample>(&event)) {
      insert_text_sample(impl_->database, *text);
    } else if (const auto* printed = std::get_if<ConsoleText>(&event)) {
      insert_console(impl_->database, *printed);
    } else if (const auto* profile = std::get_if<StepProfile>(&event)) {
      replace_profile(impl_->database, *profile);
    }
  }
  for (const auto& [id, over] : ended) impl_->derived.forget(id);
  transaction.commit();
  // After the commit, since reading the steps of a long run takes a while and others want to write too.
  for (const auto& [id, over] : ended)
    if (over) refresh(id);
}

// Another process may have deleted the run since the transaction that ended it.
void RunStore::refresh(RunId id) {
  if (const auto ended = run(id)) impl_->derived.refresh(*ended);
}

RunId RunStore::insert_finished(Run run, std::span<const StepRecord> steps) {
  if (!is_over(run.status)) run.status = RunStatus::finished;
  Transaction transaction(impl_->database);
  run.id = insert_run(impl_->database, run, std::nullopt);
  for (const StepRecord& step : steps) insert_step(impl_->database, run.id, step);
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

RunStore::Batch::Batch(RunStore& store) : transaction_(std::make_unique<Transaction>(store.impl_->database)) {}
RunStore::Batch::~Batch() = default;

void RunStore::Batch::commit() {
  transaction_->commit();
}

void RunStore::in_one_transaction(const std::function<void()>& work) {
  Transaction transaction(impl_->database);
  work();
  transaction.commit();
}

std::vector<Ladder> RunStore::ladders() {
  Statement rows(impl_->database,
                 "SELECT id, name, source, source_path, notes, created_at FROM ladders WHERE "
                 "NOT EXISTS (SELECT 1 FROM runs WHERE ladder_id = ladders.id) OR EXISTS (SELECT 1 FROM runs WHERE "
                 "ladder_id = ladders.id AND " +
                     not_in_bin + ") ORDER BY created_at, id");
  std::vector<Ladder> ladders;
  while (rows.step())
    ladders.push_back({.id = rows.integer(0),
                       .name = rows.text(1),
                       .source = rows.text(2),
                       .source_path = rows.text(3),
                       .notes = rows.text(4),
                       .created_at = rows.real(5)});
  return ladders;
}

std::vector<Run> RunStore::runs() {
  Statement rows(impl_->database,
                 "SELECT " + run_columns + " FROM runs WHERE " + not_in_bin + " ORDER BY created_at, id");
  return read_all(impl_->database, rows);
}

std::optional<Run> RunStore::run(RunId id) {
  return read_run(impl_->database, id);
}

Run RunStore::existing_run(RunId id) {
  std::optional<Run> found = run(id);
  if (!found) {
    throw StorageError("Run " + std::to_string(id) +
                       " is no longer in the database: somebody has emptied the bin that it was in.");
  }
  return std::move(*found);
}

std::vector<Run> RunStore::runs_of(LadderId ladder) {
  Statement rows(impl_->database, "SELECT " + run_columns + " FROM runs WHERE ladder_id = ? AND " + not_in_bin +
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
  const auto run = read_run(impl_->database, id);
  return run ? impl_->derived.overview(*run, quantity) : Overview{.quantity = quantity};
}

Overview RunStore::overview(RunId id, Quantity quantity, std::int64_t first_step, std::int64_t last_step,
                            std::size_t columns) {
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
                                        Derived::counts_for_run + " WHERE " + not_in_bin +
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

int RunStore::close_dead_runs() {
  Database& database = impl_->database;
  if (database.read_only()) return 0;

  struct Dead {
    RunId id;
    ProcessIdentity owner;
  };
  std::vector<Dead> dead;
  {
    Statement rows(database,
                   "SELECT id, owner_pid, owner_start, owner_boot FROM runs WHERE status IN ('queued', 'running') "
                   "AND owner_pid IS NOT NULL");
    while (rows.step()) {
      ProcessIdentity owner{.pid = rows.integer(1), .start = rows.integer(2), .boot = rows.text(3)};
      if (!is_alive(owner)) dead.push_back({rows.integer(0), std::move(owner)});
    }
  }
  if (dead.empty()) return 0;  // the usual case takes no write lock

  std::vector<RunId> closed;
  Transaction transaction(database);
  for (const auto& [id, owner] : dead) {
    std::string reason = "the process that ran it (pid " + std::to_string(owner.pid) + ") has exited; ";
    double last_at = missing;
    {
      Statement last(database, "SELECT step, at FROM steps WHERE run_id = ? ORDER BY at DESC, step DESC LIMIT 1");
      last.bind(id);
      if (last.step()) {
        reason += "last step " + std::to_string(last.integer(0));
        last_at = last.real(1);
      } else {
        reason += "it recorded no step";
      }
    }
    // Checks the owner again: since the query above, another process may have closed or resumed the run.
    Statement update(database,
                     "UPDATE runs SET status = 'interrupted', reason = ?, "
                     "ended_at = coalesce(?, started_at, created_at) WHERE id = ? "
                     "AND status IN ('queued', 'running') AND owner_pid = ? AND owner_start IS ?");
    update.bind(reason).bind(last_at).bind(id).bind(owner.pid).bind(known(owner.start)).run();
    if (database.changes() == 0) continue;
    closed.push_back(id);
    impl_->derived.forget(id);
  }
  transaction.commit();
  for (const RunId id : closed) refresh(id);
  return static_cast<int>(closed.size());
}

std::vector<SystemMetrics> RunStore::system_metrics(RunId id) {
  return read_system_metrics(impl_->database, id);
}

std::string RunStore::console(RunId id, std::size_t most) {
  return read_console(impl_->database, id, most);
}

StepProfile RunStore::profile(RunId id) {
  return read_profile(impl_->database, id);
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
    curations[rows.integer(0)] = {.tags = tags_from(rows.text(1)),
                                  .note = rows.text(2),
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
  write.bind(run).bind(known(tags_text(curation.tags))).bind(known(curation.note));
  write.bind(curation.pinned ? 1 : 0).bind(curation.archived ? 1 : 0).bind(curation.deleted_at).run();
}

void RunStore::rename_run(RunId run, const std::string& name) {
  Statement(impl_->database, "UPDATE runs SET name = ? WHERE id = ?").bind(name).bind(run).run();
}

void RunStore::rename_ladder(LadderId ladder, const std::string& name) {
  Statement(impl_->database, "UPDATE ladders SET name = ? WHERE id = ?").bind(name).bind(ladder).run();
}

std::vector<RunId> RunStore::empty_bin(double deleted_before) {
  Transaction transaction(impl_->database);
  std::vector<RunId> gone;
  {
    Statement rows(impl_->database,
                   "SELECT run_id FROM curation JOIN runs ON runs.id = run_id WHERE deleted_at < ? AND status NOT IN "
                   "('queued', 'running') AND run_id NOT IN (SELECT parent_id FROM runs WHERE status = 'queued' AND "
                   "parent_id IS NOT NULL) ORDER BY run_id");
    rows.bind(deleted_before);
    while (rows.step()) gone.push_back(rows.integer(0));
  }
  if (gone.empty()) return gone;
  const std::int64_t newest = impl_->database.integer("SELECT max(id) FROM runs");
  for (const RunId id : gone) {
    // A fork outlives its parent and stops naming it.
    Statement(impl_->database, "UPDATE runs SET parent_id = NULL WHERE parent_id = ?").bind(id).run();
    Statement(impl_->database, "DELETE FROM runs WHERE id = ?").bind(id).run();
  }
  // Otherwise SQLite would reuse its number for the next run (see insert_run).
  if (gone.back() == newest) set_setting("highest_run", std::to_string(newest));
  transaction.commit();
  return gone;
}

void RunStore::request(RunId run, RunRequest verb) {
  Statement insert(impl_->database, "INSERT INTO requests (run_id, verb, at) VALUES (?, ?, ?)");
  insert.bind(run).bind(to_string(verb)).bind(unix_now()).run();
}

std::vector<std::pair<RunId, RunRequest>> RunStore::take_requests() {
  Database& database = impl_->database;
  if (database.integer("SELECT count(*) FROM requests") == 0) return {};  // the usual case takes no write lock
  std::vector<std::pair<RunId, RunRequest>> taken;
  Transaction transaction(database);
  const ProcessIdentity own = this_process();
  {
    Statement rows(database,
                   "SELECT run_id, verb FROM requests JOIN runs ON runs.id = run_id "
                   "WHERE owner_pid = ? AND owner_start IS ? ORDER BY requests.id");
    rows.bind(own.pid).bind(known(own.start));
    while (rows.step()) taken.emplace_back(rows.integer(0), run_request_from(rows.text(1)));
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
  return found;
}

const fs::path& RunStore::file() const {
  return impl_->database.file();
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
