// Opens the schema of a file: checks that it is ours and unchanged by strangers, backs it up, runs missing migrations,
// creates indices. The SQL is in migrations/; a published migration never changes. Other processes may do the same at
// once, so the version is read again under the lock.
#include "storage/database/schema.h"

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "newest_schema.h"
#include "storage/database/backup.h"
#include "storage/database/column_values.h"
#include "storage/database/migrations/migrations.h"
#include "storage/database/process.h"
#include "storage/database/schema_check.h"
#include "storage/database/step_rows.h"
#include "storage/records.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::int64_t longest_log = 4 << 20;  // bytes of the write-ahead log, after which its pages go into the file

struct Index {
  std::string_view name;
  std::string_view on;
};

constexpr std::array indices{
    Index{"runs_by_ladder", "runs(ladder_id, rung, repeat)"},
    Index{"runs_in_bin", "curation(deleted_at) WHERE deleted_at IS NOT NULL"},
    Index{"runs_not_over", "runs(status) WHERE status IN ('queued', 'running')"},
    Index{"runs_hidden", "runs(hidden) WHERE hidden <> 0"},
    Index{"traces_by_run", "traces(run_id) WHERE run_id IS NOT NULL"},
    Index{"runs_by_parent", "runs(parent_id) WHERE parent_id IS NOT NULL"},
};

std::string name_and_columns(const Index& index) {
  return std::string(index.name) + " ON " + std::string(index.on);
}

bool is_empty(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master") == 0;
}

// Returns the file's version or throws. Changes nothing. Call in a transaction: otherwise another process's first
// migration may happen between the two reads.
std::int64_t version_of(Database& database, std::int64_t newest) {
  const std::int64_t owner = database.integer("PRAGMA application_id");
  const std::int64_t version = database.integer("PRAGMA user_version");
  const std::string file = database.file().string();
  if (owner != application_id && (owner != 0 || !is_empty(database)))
    throw StorageError(file + " is a SQLite database of another program");
  if (version > newest || version < 0)
    throw StorageError(
        fmt::format("{} was written by a newer version of Stepladder (its format is {}, this version knows up to {})",
                    file, version, newest));
  return version;
}

// Throws if a live process, which must be an older program, is writing runs of this file.
void refuse_older_writers(Database& database) {
  Statement rows(database,
                 "SELECT id, owner_pid, owner_start, owner_boot FROM runs WHERE status IN ('queued', 'running') AND "
                 "owner_pid IS NOT NULL");
  while (rows.step()) {
    if (!is_alive({.pid = rows.integer(1), .start = rows.integer(2), .boot = rows.text(3)})) continue;
    throw MigrationError(
        fmt::format("{} was made by an older version of Stepladder, which is still writing run {} to it (process {}); "
                    "open it again when that run has ended",
                    database.file().string(), rows.integer(0), rows.integer(1)));
  }
}

// Runs the missing migrations, each in one transaction; those of a new file are one, so no other process opens it half
// made.
void migrate(Database& database, std::span<const char* const> steps, std::shared_ptr<const void> backup = {}) {
  const auto newest = static_cast<std::int64_t>(steps.size());
  while (true) {
    if (database.integer("PRAGMA user_version") == version_with_steps_to_move) move_steps(database);
    Transaction transaction(database);
    // Read under the write lock: another process may have been faster.
    const std::int64_t done = version_of(database, newest);
    if (done >= newest) return;
    if (done > 0 && done != version_with_steps_to_move) refuse_older_writers(database);
    if (done == version_with_steps_to_move && has_steps_to_move(database)) continue;
    if (done == 0) {
      create_schema(database, steps);
    } else {
      database.execute(steps[static_cast<std::size_t>(done)]);
      database.execute(fmt::format("PRAGMA user_version = {}", done + 1));
    }
    transaction.commit();
    backup.reset();
  }
}

// The objects that these migrations create, and our indices. Any thread; made once for each version of our own
// migrations.
std::vector<SchemaObject> expected_objects(std::span<const char* const> steps) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, std::size_t>, std::vector<SchemaObject>> known;
  const std::pair<const void*, std::size_t> key{steps.data(), steps.size()};
  const bool is_known_list = steps.data() == migrations().data();
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); is_known_list && found != known.end()) return found->second;
  Database fresh{Database::InMemory()};
  migrate(fresh, steps);
  std::vector<SchemaObject> objects = schema_objects(fresh);
  for (const Index& index : indices)
    objects.push_back({std::string(index.name), normalised_definition("CREATE INDEX " + name_and_columns(index))});
  if (is_known_list) known[key] = objects;
  return objects;
}

// Throws StorageError if another program has changed what this version of the schema has.
void refuse_strangers(Database& database, std::span<const char* const> steps) {
  const std::vector<std::string> strange = strange_objects(schema_objects(database), expected_objects(steps));
  if (strange.empty()) return;
  throw StorageError(database.file().string() + " was changed by another program: " + strange.front() +
                     (strange.size() > 1 ? fmt::format(" (and {} more)", strange.size() - 1) : "") +
                     ". Import it to take its runs into your own file.");
}

// Throws MigrationError if the file has something of the user's with a name that a missing migration needs.
void refuse_taken_names(Database& database, std::span<const char* const> steps) {
  // Version and names of one moment: another process may be migrating the file.
  Transaction one_state(database, Transaction::Kind::read);
  const std::int64_t version = version_of(database, static_cast<std::int64_t>(steps.size()));
  std::map<std::string, bool> names;  // whether it is ours already
  for (std::size_t done = static_cast<std::size_t>(version); done <= steps.size(); ++done)
    for (const SchemaObject& object : expected_objects(steps.first(done)))
      names.try_emplace(object.name, done == static_cast<std::size_t>(version));
  for (const SchemaObject& object : schema_objects(database)) {
    const auto found = names.find(object.name);
    if (found == names.end() || found->second) continue;
    throw MigrationError(database.file().string() + " has a table or index `" + object.name +
                         "` that isn't Stepladder's, and this version of Stepladder needs the name. Rename yours "
                         "(ALTER TABLE " +
                         object.name + " RENAME TO my_" + object.name +
                         ";) and open the file again; nothing was changed");
  }
}

// The file's version, if it is ours and nobody else has changed it.
std::int64_t trusted_version(Database& database, std::span<const char* const> steps) {
  Transaction one_state(database, Transaction::Kind::read);
  const std::int64_t version = version_of(database, static_cast<std::int64_t>(steps.size()));
  if (!database.file().empty()) refuse_strangers(database, steps.first(static_cast<std::size_t>(version)));
  return version;
}

void create_missing_indices(Database& database) {
  for (const Index& index : indices) {
    Statement known(database, "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", index.name);
    if (known.step()) continue;
    // IF NOT EXISTS, since another process may have been faster.
    database.execute("CREATE INDEX IF NOT EXISTS " + name_and_columns(index));
  }
}

}  // namespace

void create_schema(Database& database, std::span<const char* const> steps) {
  if (steps.data() == migrations().data() && steps.size() == migrations().size())
    database.execute(migration::newest_schema);
  else
    for (const char* const step : steps) database.execute(step);
  database.execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, std::ssize(steps)));
}

void prepare_schema(Database& database, std::span<const char* const> steps, BackUp back_up) {
  const auto newest = static_cast<std::int64_t>(steps.size());
  const std::int64_t version = trusted_version(database, steps);
  if (database.read_only()) {
    if (version > 0 && version < newest && version != version_with_steps_to_move) refuse_older_writers(database);
    if (version < newest)
      throw StorageError(database.file().string() + (version == 0
                                                         ? " is an empty database"
                                                         : " was written by an older version of Stepladder and "
                                                           "has to be opened for writing once"));
    return;
  }

  database.use_write_ahead_log();
  database.execute(fmt::format("PRAGMA wal_autocheckpoint = {}", longest_log / database.integer("PRAGMA page_size")));
  if (version < newest) {
    std::shared_ptr<const void> backup;
    if (version > 0) refuse_taken_names(database, steps);
    if (version > 0 && version != version_with_steps_to_move) {  // then they are being moved, and that was done before
      refuse_older_writers(database);
      if (back_up == BackUp::before_migrations) backup = back_up_before_migration(database, version);
    }
    migrate(database, steps, std::move(backup));
  }
  create_missing_indices(database);
}

namespace {

constexpr std::int64_t rows_moved_at_once = 256;

// Rows that name a run that isn't there, as other programs may have left them, are moved too.
class WithoutForeignKeys {
 public:
  explicit WithoutForeignKeys(Database& database) : database_(database) {
    database_.execute("PRAGMA foreign_keys = OFF");
  }
  ~WithoutForeignKeys() {
    try {
      database_.execute("PRAGMA foreign_keys = ON");
    } catch (const StorageError&) {  // the connection is of no use any more, and the next statement says why
    }
  }
  WithoutForeignKeys(const WithoutForeignKeys&) = delete;
  WithoutForeignKeys& operator=(const WithoutForeignKeys&) = delete;

 private:
  Database& database_;
};

StepRecord read_old_row(const Statement& row) {
  const std::int64_t nan_mask = row.integer(10);
  return {.run = row.integer(0),
          .step = row.integer(1),
          .loss = real_or_nan(row, 3, nan_mask, 0),
          .val_loss = real_or_nan(row, 4, nan_mask, 1),
          .dt_ms = row.real(5),
          .tokens = row.integer(6),
          .lr = row.real(7),
          .grad_norm = real_or_nan(row, 8, nan_mask, 2),
          .at = row.real(9),
          .parts = {row.real(11), row.real(12), row.real(13), row.real(14), row.real(15)}};
}

// Moves the first rows of the old table, all of one run. Returns how many.
std::size_t move_some(Database& database) {
  std::vector<StepRecord> steps;
  std::int64_t last_attempt = 0;
  {
    Statement rows(database,
                   "SELECT run_id, step, attempt, loss, val_loss, dt_ms, tokens, lr, grad_norm, at, nan_mask, data_ms, "
                   "forward_ms, backward_ms, optimizer_ms, communication_ms FROM steps_to_move "
                   "ORDER BY run_id, step, attempt LIMIT ?",
                   rows_moved_at_once);
    while (rows.step() && (steps.empty() || steps.front().run == rows.integer(0))) {
      steps.push_back(read_old_row(rows));
      last_attempt = rows.integer(2);
    }
  }
  if (steps.empty()) return 0;
  insert_steps(database, steps.front().run, steps);
  database.run("DELETE FROM steps_to_move WHERE run_id = ?1 AND step <= ?2 AND (step < ?2 OR attempt <= ?3)",
               steps.front().run, steps.back().step, last_attempt);
  if (static_cast<std::size_t>(database.changes()) != steps.size())
    throw StorageError(database.file().string() + " is damaged: its old steps are not in order");
  return steps.size();
}

}  // namespace

bool has_steps_to_move(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'steps_to_move'") > 0 &&
         database.integer("SELECT EXISTS (SELECT 1 FROM steps_to_move)") > 0;
}

void move_steps(Database& database) {
  const WithoutForeignKeys moving(database);
  // Another process may be moving them too, and be done first.
  in_slices(database, [&] { return has_steps_to_move(database) && move_some(database) > 0; });
}

}  // namespace stepladder
