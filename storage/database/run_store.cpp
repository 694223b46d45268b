// How a file is opened, its parts, and its runs and ladders. run_store_steps.cpp reads and writes steps.
#include "storage/database/run_store.h"

#include <cstdlib>
#include <utility>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/process.h"
#include "storage/database/rescue/write_ahead_log.h"
#include "storage/database/run_rows.h"
#include "storage/database/run_store_impl.h"
#include "storage/database/schema.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

Ladder bounded_ladder(Ladder ladder) {
  ladder.name = bounded(std::move(ladder.name), longest_name);
  ladder.source_path = bounded(std::move(ladder.source_path), longest_line);
  ladder.notes = bounded(std::move(ladder.notes), longest_note);
  return ladder;
}

// SQLite would drop committed transactions without a word.
const fs::path& with_sound_log(const fs::path& file) {
  const std::string damage = damage_of_write_ahead_log(file);
  if (!damage.empty()) throw DamagedFile(file, damage);
  return file;
}

}  // namespace

RunStore::Impl::Impl(Database::InMemory in_memory) : database(in_memory) {
  prepare_schema(database);
}

RunStore::Impl::Impl(const fs::path& file, Mode mode)
    : database(with_sound_log(file), mode == Mode::read_only ? Database::Mode::read_only : Database::Mode::read_write) {
  prepare_schema(database);
}

RunStore::RunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)), parts_(&impl_->parts) {}
RunStore::RunStore(RunStore&&) noexcept = default;
RunStore& RunStore::operator=(RunStore&&) noexcept = default;
RunStore::~RunStore() = default;

RunStore RunStore::open(const fs::path& file, Mode mode) {
  return RunStore(std::make_unique<Impl>(file, mode));
}

RunStore RunStore::in_memory() {
  return RunStore(std::make_unique<Impl>(Database::InMemory()));
}

const fs::path& RunStore::file() const {
  return impl_->database.file();
}

bool RunStore::read_only() const {
  return impl_->database.read_only();
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

std::vector<Ladder> RunStore::ladders() {
  Statement rows(
      impl_->database,
      "SELECT id, name, source, source_path, notes, created_at, uid, (SELECT count(*) FROM runs JOIN curation ON "
      "run_id = runs.id WHERE ladder_id = ladders.id AND deleted_at IS NOT NULL AND hidden = 0) FROM ladders WHERE "
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
                                      .created_at = rows.real(5),
                                      .binned_runs = rows.integer(7)}));
  return ladders;
}

void RunStore::rename_ladder(LadderId ladder, const std::string& name) {
  impl_->database.run("UPDATE ladders SET name = ? WHERE id = ?", bounded(name, longest_name), ladder);
}

RunId RunStore::create_run(const Run& run) {
  return insert_run(impl_->database, run, is_over(run.status) ? std::nullopt : std::optional(run_owner()));
}

void RunStore::update_run(const Run& run) {
  stepladder::update_run(impl_->database, run);
  impl_->derived.forget(run.id);
}

void RunStore::rename_run(RunId run, const std::string& name) {
  impl_->database.run("UPDATE runs SET name = ? WHERE id = ?", bounded(name, longest_name), run);
}

// A launched run is this user's if the order book has it, or the order of another machine that it is of. What is in
// memory comes from nowhere else.
Run RunStore::marked(Run run) {
  if (run.source != "launched" || file().empty()) return run;
  try {
    const std::size_t far = run.source_path.find(":runs/");
    run.is_claimed = !parts_->launches.has_anywhere(order_kind::launch, run.uid) &&
                     (far == std::string::npos ||
                      !parts_->launches.has_anywhere(order_kind::far_run, run.source_path.substr(far + 6)));
  } catch (const StorageError&) {
    run.is_claimed = true;  // nobody knows whose it is
  }
  return run;
}

std::vector<Run> RunStore::runs() {
  Statement rows(impl_->database,
                 "SELECT " + run_columns + " FROM runs WHERE " + is_listed + " ORDER BY created_at, id");
  std::vector<Run> found = read_runs(impl_->database, rows);
  for (Run& run : found) run = marked(std::move(run));
  return found;
}

std::optional<Run> RunStore::run(RunId id) {
  Statement rows(impl_->database, "SELECT " + run_columns + " FROM runs WHERE id = ? AND hidden = 0", id);
  if (!rows.step()) return std::nullopt;
  return marked(read_run(impl_->database, rows));
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
  Statement rows(
      impl_->database,
      "SELECT " + run_columns + " FROM runs WHERE ladder_id = ? AND " + is_listed + " ORDER BY rung, repeat, id",
      ladder);
  std::vector<Run> found = read_runs(impl_->database, rows);
  for (Run& run : found) run = marked(std::move(run));
  return found;
}

fs::path default_database_file() {
  if (const char* named = std::getenv("STEPLADDER_DB"); named && *named) return named;
  return user_folder("XDG_DATA_HOME", ".local/share") / "stepladder" / "stepladder.db";
}

}  // namespace stepladder
