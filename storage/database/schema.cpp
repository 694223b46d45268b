#include "storage/database/schema.h"

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "storage/database/backup.h"
#include "storage/database/process.h"
#include "storage/database/schema_check.h"
#include "storage/database/step_move.h"

namespace stepladder {
namespace {

constexpr const char* first_tables = R"sql(
CREATE TABLE ladders (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  source TEXT,
  source_path TEXT,
  notes TEXT,
  created_at REAL NOT NULL
);

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  ladder_id INTEGER REFERENCES ladders(id),
  rung INTEGER NOT NULL DEFAULT 0,
  repeat INTEGER NOT NULL DEFAULT 0,
  stage TEXT,
  title TEXT,
  changed TEXT,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'finished', 'stopped', 'failed', 'interrupted')),
  reason TEXT,
  source TEXT,
  source_path TEXT,
  created_at REAL NOT NULL,
  started_at REAL,
  ended_at REAL,
  planned_steps INTEGER,
  tokens_per_step INTEGER,
  warmup_steps INTEGER,
  params INTEGER,
  model_flops_per_token REAL,
  loss_floor REAL,
  device TEXT,
  hardware TEXT,
  precision TEXT,
  sync TEXT NOT NULL DEFAULT 'unknown' CHECK (sync IN ('event', 'device', 'none', 'unknown')),
  recipe TEXT,
  environment TEXT,
  owner_pid INTEGER,
  owner_start INTEGER,
  owner_boot TEXT
);

CREATE TABLE steps (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  loss REAL,
  val_loss REAL,
  dt_ms REAL,
  tokens INTEGER,
  lr REAL,
  grad_norm REAL,
  at REAL,
  nan_mask INTEGER NOT NULL DEFAULT 0,
  tokens_per_s REAL GENERATED ALWAYS AS (CASE WHEN dt_ms > 0 THEN tokens * 1000.0 / dt_ms END) VIRTUAL,
  PRIMARY KEY (run_id, step, attempt)
) WITHOUT ROWID;

CREATE TABLE summaries (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  asked_warmup INTEGER NOT NULL,
  asked_tokens_per_step INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  warmup_steps INTEGER NOT NULL,
  loss_first REAL,
  loss_last REAL,
  loss_min REAL,
  val_loss_last REAL,
  val_loss_min REAL,
  dt_ms_median REAL,
  dt_ms_p25 REAL,
  dt_ms_p75 REAL,
  tokens_per_s REAL,
  tokens_per_s_p25 REAL,
  tokens_per_s_p75 REAL,
  nan_mask INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE VIEW latest_steps AS
  SELECT * FROM steps WHERE attempt =
    (SELECT max(attempt) FROM steps AS other WHERE other.run_id = steps.run_id AND other.step = steps.step);
)sql";

// Pausing, resuming, forking, checkpoints and samples of runs, and the machine's state meanwhile.
constexpr const char* life_cycle = R"sql(
ALTER TABLE runs ADD COLUMN parent_id INTEGER REFERENCES runs(id);
ALTER TABLE runs ADD COLUMN forked_at_step INTEGER;
ALTER TABLE runs ADD COLUMN loss_against INTEGER;
ALTER TABLE runs ADD COLUMN attention TEXT;
ALTER TABLE runs ADD COLUMN setup_ms REAL;
ALTER TABLE runs ADD COLUMN peak_memory_bytes INTEGER;

ALTER TABLE steps ADD COLUMN data_ms REAL;
ALTER TABLE steps ADD COLUMN forward_ms REAL;
ALTER TABLE steps ADD COLUMN backward_ms REAL;
ALTER TABLE steps ADD COLUMN optimizer_ms REAL;
ALTER TABLE steps ADD COLUMN communication_ms REAL;

CREATE TABLE lanes (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  at REAL NOT NULL,
  step INTEGER NOT NULL,
  cpu_load REAL,
  process_cores REAL,
  resident_bytes INTEGER,
  gpu_load REAL,
  gpu_clock_mhz REAL,
  gpu_power_w REAL,
  gpu_temperature_c REAL,
  gpu_memory_bytes INTEGER,
  throttle_reason TEXT,
  PRIMARY KEY (run_id, at)
) WITHOUT ROWID;

CREATE TABLE samples (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  at REAL,
  text TEXT NOT NULL,
  PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

CREATE TABLE requests (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  verb TEXT NOT NULL CHECK (verb IN ('pause', 'continue', 'stop')),
  at REAL NOT NULL
);

DROP VIEW latest_steps;
CREATE VIEW latest_steps AS
  SELECT * FROM steps WHERE attempt =
    (SELECT max(attempt) FROM steps AS other WHERE other.run_id = steps.run_id AND other.step = steps.step);
)sql";

// Summaries are a cache whose content has changed, so they are rebuilt.
constexpr const char* summaries_with_checks = R"sql(
DELETE FROM summaries;
ALTER TABLE summaries ADD COLUMN dt_ms_p5 REAL;
ALTER TABLE summaries ADD COLUMN dt_ms_p95 REAL;
ALTER TABLE summaries ADD COLUMN drift REAL;
ALTER TABLE summaries ADD COLUMN spikes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN spike_period INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN pauses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN untimed_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN nonfinite_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN first_nonfinite_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN backwards_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN repeated_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN first_repeated_step INTEGER NOT NULL DEFAULT 0;
)sql";

// Users' marks on their runs; no list shows runs in the bin.
constexpr const char* curation = R"sql(
CREATE TABLE curation (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  tags TEXT,
  note TEXT,
  pinned INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0,
  deleted_at REAL
);
)sql";

// Levels of long series (storage/analysis/overview.h), derived from steps as summaries are.
constexpr const char* overviews = R"sql(
CREATE TABLE overviews (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  format INTEGER NOT NULL,
  steps INTEGER NOT NULL
);

CREATE TABLE overview_chunks (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  quantity TEXT NOT NULL,
  level INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  buckets BLOB NOT NULL,
  PRIMARY KEY (run_id, quantity, level, last_step)
);
)sql";

// Output of watched programs.
constexpr const char* console = R"sql(
CREATE TABLE console (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  at REAL,
  text BLOB NOT NULL,
  PRIMARY KEY (run_id, part)
);
)sql";

// The time of a step by operator.
constexpr const char* profiles = R"sql(
CREATE TABLE profiles (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  at REAL,
  steps INTEGER NOT NULL
);

CREATE TABLE operators (
  run_id INTEGER NOT NULL REFERENCES profiles(run_id) ON DELETE CASCADE,
  part TEXT NOT NULL,
  name TEXT NOT NULL,
  shapes TEXT NOT NULL,
  calls REAL NOT NULL,
  self_ms REAL NOT NULL,
  flops REAL,
  PRIMARY KEY (run_id, part, name, shapes)
) WITHOUT ROWID;
)sql";

// A random identity of each run, and a mark for runs that no list shows, since their rows are still being written or
// deleted in batches.
constexpr const char* identities = R"sql(
ALTER TABLE runs ADD COLUMN uid TEXT;
ALTER TABLE runs ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
)sql";

// Steps in less space (step_rows.h says how their values are stored). The old rows are moved by move_steps, then the
// old table goes.
constexpr const char* compact_steps = R"sql(
DROP VIEW latest_steps;
ALTER TABLE steps RENAME TO steps_to_move;

CREATE TABLE steps (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  loss REAL,
  val_loss REAL,
  dt_ns INTEGER,
  tokens INTEGER,
  lr_e12 INTEGER,
  grad_norm_e9 INTEGER,
  at_ms INTEGER,
  data_us INTEGER,
  forward_us INTEGER,
  backward_us INTEGER,
  optimizer_us INTEGER,
  communication_us INTEGER,
  dt_ms REAL GENERATED ALWAYS AS (dt_ns / 1e6) VIRTUAL,
  lr REAL GENERATED ALWAYS AS (lr_e12 / 1e12) VIRTUAL,
  grad_norm REAL GENERATED ALWAYS AS (grad_norm_e9 / 1e9) VIRTUAL,
  at REAL GENERATED ALWAYS AS (at_ms / 1e3) VIRTUAL,
  tokens_per_s REAL GENERATED ALWAYS AS (CASE WHEN dt_ns > 0 THEN tokens * 1000.0 / (dt_ns / 1e6) END) VIRTUAL,
  data_ms REAL GENERATED ALWAYS AS (data_us / 1e3) VIRTUAL,
  forward_ms REAL GENERATED ALWAYS AS (forward_us / 1e3) VIRTUAL,
  backward_ms REAL GENERATED ALWAYS AS (backward_us / 1e3) VIRTUAL,
  optimizer_ms REAL GENERATED ALWAYS AS (optimizer_us / 1e3) VIRTUAL,
  communication_ms REAL GENERATED ALWAYS AS (communication_us / 1e3) VIRTUAL,
  PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

CREATE TABLE superseded_steps (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  nan_mask INTEGER NOT NULL DEFAULT 0,
  loss REAL,
  val_loss REAL,
  dt_ns INTEGER,
  tokens INTEGER,
  lr_e12 INTEGER,
  grad_norm_e9 INTEGER,
  at_ms INTEGER,
  data_us INTEGER,
  forward_us INTEGER,
  backward_us INTEGER,
  optimizer_us INTEGER,
  communication_us INTEGER,
  dt_ms REAL GENERATED ALWAYS AS (dt_ns / 1e6) VIRTUAL,
  lr REAL GENERATED ALWAYS AS (lr_e12 / 1e12) VIRTUAL,
  grad_norm REAL GENERATED ALWAYS AS (grad_norm_e9 / 1e9) VIRTUAL,
  at REAL GENERATED ALWAYS AS (at_ms / 1e3) VIRTUAL,
  PRIMARY KEY (run_id, step, attempt)
) WITHOUT ROWID;

CREATE TABLE nan_steps (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  nan_mask INTEGER NOT NULL,
  PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

CREATE VIEW latest_steps AS
  SELECT steps.*, coalesce((SELECT nan_mask FROM nan_steps WHERE nan_steps.run_id = steps.run_id AND
    nan_steps.step = steps.step), 0) AS nan_mask FROM steps;
)sql";

// While a file has this version, some of its steps may still be in the old table. Nobody reads it then: whoever opens
// it moves the rest first.
constexpr std::int64_t version_with_steps_to_move = 9;
constexpr const char* without_moved_steps = "DROP TABLE steps_to_move";

// What other programs used meanwhile.
constexpr const char* contention = R"sql(
ALTER TABLE lanes ADD COLUMN other_cores REAL;
ALTER TABLE lanes ADD COLUMN other_gpu_load REAL;
ALTER TABLE lanes ADD COLUMN cores INTEGER;
ALTER TABLE lanes ADD COLUMN needed_cores INTEGER;

ALTER TABLE summaries ADD COLUMN watched_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN disturbed_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summaries ADD COLUMN other_cores REAL;
ALTER TABLE summaries ADD COLUMN other_gpu_load REAL;
ALTER TABLE summaries ADD COLUMN cores INTEGER;
ALTER TABLE summaries ADD COLUMN needed_cores INTEGER;
)sql";

// Other processes see in which order runs wait and what is paused, and ask for another order.
constexpr const char* queue = R"sql(
CREATE TABLE queue (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  paused INTEGER NOT NULL
) WITHOUT ROWID;

DROP TABLE requests;
CREATE TABLE requests (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  verb TEXT NOT NULL CHECK (verb IN ('pause', 'continue', 'stop', 'move')),
  place INTEGER,
  at REAL NOT NULL
);
)sql";

// Whatever else a run logs. `metric_figures` and `metric_overviews` are derived from the values.
constexpr const char* metrics = R"sql(
CREATE TABLE metrics (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  unit TEXT,
  direction TEXT,
  section TEXT,
  field TEXT,
  UNIQUE (run_id, name)
);

CREATE TABLE metric_values (
  metric_id INTEGER NOT NULL REFERENCES metrics(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  value REAL,
  at_ms INTEGER,
  PRIMARY KEY (metric_id, step)
) WITHOUT ROWID;

CREATE TABLE superseded_metric_values (
  metric_id INTEGER NOT NULL REFERENCES metrics(id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  value REAL,
  at_ms INTEGER,
  PRIMARY KEY (metric_id, step, attempt)
) WITHOUT ROWID;

CREATE TABLE metric_figures (
  metric_id INTEGER PRIMARY KEY REFERENCES metrics(id) ON DELETE CASCADE,
  format INTEGER NOT NULL,
  count INTEGER NOT NULL,
  not_finite INTEGER NOT NULL,
  first_step INTEGER,
  last_step INTEGER,
  first REAL,
  last REAL,
  lowest REAL,
  highest REAL,
  mean REAL,
  median REAL
);

CREATE TABLE metric_overviews (
  metric_id INTEGER NOT NULL REFERENCES metrics(id) ON DELETE CASCADE,
  level INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  buckets BLOB NOT NULL,
  PRIMARY KEY (metric_id, level, last_step)
) WITHOUT ROWID;

CREATE VIEW metric_points AS
  SELECT metrics.run_id, metrics.name, metric_values.step, metric_values.value,
    coalesce(metric_values.at_ms / 1e3, (SELECT at FROM steps WHERE steps.run_id = metrics.run_id AND
      steps.step = metric_values.step)) AS at
  FROM metrics JOIN metric_values ON metric_values.metric_id = metrics.id;
)sql";

// Which bytes of which journals are stored.
constexpr const char* followed = R"sql(
CREATE TABLE followed (
  source TEXT PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  bytes INTEGER NOT NULL,
  state TEXT
) WITHOUT ROWID;
)sql";

// Imported traces of profilers, summed up by storage/traces/attribution.h.
constexpr const char* traces = R"sql(
CREATE TABLE traces (
  id INTEGER PRIMARY KEY,
  run_id INTEGER REFERENCES runs(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  source_path TEXT,
  format TEXT NOT NULL,
  imported_at REAL NOT NULL,
  on_gpu INTEGER NOT NULL,
  has_steps INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  slices INTEGER NOT NULL
);

CREATE TABLE trace_steps (
  trace_id INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  start_ms REAL NOT NULL,
  dt_ms REAL NOT NULL,
  PRIMARY KEY (trace_id, rank, step)
) WITHOUT ROWID;

CREATE TABLE trace_kinds (
  trace_id INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  kind TEXT NOT NULL,
  ms REAL NOT NULL,
  busy_ms REAL NOT NULL,
  PRIMARY KEY (trace_id, rank, step, kind)
) WITHOUT ROWID;

CREATE TABLE trace_operators (
  trace_id INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  part TEXT NOT NULL,
  name TEXT NOT NULL,
  shapes TEXT NOT NULL,
  launcher TEXT NOT NULL,
  module TEXT NOT NULL DEFAULT '',
  calls REAL NOT NULL,
  self_ms REAL NOT NULL,
  busy_ms REAL NOT NULL,
  flops REAL,
  PRIMARY KEY (trace_id, place)
) WITHOUT ROWID;
)sql";

// A ladder whose runs are trained elsewhere is recognised by its uid.
constexpr const char* ladder_uids = R"sql(
ALTER TABLE ladders ADD COLUMN uid TEXT;
UPDATE ladders SET uid = lower(hex(randomblob(16)));
)sql";

// Machines, what was started on them, and which runs that has become.
constexpr const char* machines = R"sql(
CREATE TABLE machines (
  alias TEXT PRIMARY KEY,
  is_local INTEGER NOT NULL DEFAULT 0,
  folder TEXT,
  program TEXT,
  uses_slurm INTEGER NOT NULL DEFAULT 0,
  partition TEXT,
  account TEXT,
  time_limit TEXT,
  gpus INTEGER,
  nodes INTEGER,
  tasks_per_node INTEGER,
  added_at REAL NOT NULL,
  facts TEXT,
  heard_at REAL,
  lost_at REAL,
  lost_why TEXT
) WITHOUT ROWID;

CREATE TABLE far_runs (
  uid TEXT PRIMARY KEY,
  alias TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('watch', 'train', 'ladder', 'sweep', 'setup')),
  name TEXT,
  request TEXT NOT NULL,
  sent TEXT,
  state TEXT,
  asked_at REAL NOT NULL,
  is_started INTEGER NOT NULL DEFAULT 0,
  is_over INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE far_members (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  far_uid TEXT NOT NULL
);
)sql";

// The anatomy of traces and the slices of a few of their steps; the times of single passes.
constexpr const char* profiler = R"sql(
CREATE TABLE trace_anatomy (
  trace_id INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  phase TEXT NOT NULL,
  part TEXT NOT NULL,
  block INTEGER,
  known_by TEXT NOT NULL,
  ms REAL NOT NULL,
  PRIMARY KEY (trace_id, place)
) WITHOUT ROWID;

CREATE TABLE trace_slices (
  trace_id INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  rank INTEGER NOT NULL,
  step INTEGER NOT NULL,
  slices INTEGER NOT NULL,
  packed BLOB NOT NULL,
  PRIMARY KEY (trace_id, rank, step)
);

CREATE TABLE passes (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  measured_at REAL NOT NULL,
  host TEXT,
  hardware TEXT,
  device TEXT NOT NULL,
  model TEXT NOT NULL,
  batch INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  vocab INTEGER NOT NULL,
  threads INTEGER,
  is_synced INTEGER NOT NULL
);

CREATE TABLE pass_calls (
  pass_id INTEGER NOT NULL REFERENCES passes(id) ON DELETE CASCADE,
  computation TEXT NOT NULL,
  precision TEXT NOT NULL,
  warmup INTEGER NOT NULL,
  call INTEGER NOT NULL,
  ms REAL NOT NULL,
  PRIMARY KEY (pass_id, computation, precision, warmup, call)
) WITHOUT ROWID;
)sql";

// Nothing ever wrote it: the parts of the model are in trace_anatomy.
constexpr const char* without_module = R"sql(
ALTER TABLE trace_operators DROP COLUMN module;
)sql";

constexpr std::array migration_list{first_tables,
                                    life_cycle,
                                    summaries_with_checks,
                                    curation,
                                    overviews,
                                    console,
                                    profiles,
                                    identities,
                                    compact_steps,
                                    without_moved_steps,
                                    contention,
                                    queue,
                                    metrics,
                                    followed,
                                    traces,
                                    ladder_uids,
                                    machines,
                                    profiler,
                                    without_module};

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
    throw StorageError(file + " was written by a newer version of Stepladder (its format is " +
                       std::to_string(version) + ", this version knows up to " + std::to_string(newest) + ")");
  return version;
}

// Throws if a live process, which must be an older program, is writing runs of this file.
void refuse_older_writers(Database& database) {
  Statement rows(database,
                 "SELECT id, owner_pid, owner_start, owner_boot FROM runs WHERE status IN ('queued', 'running') AND "
                 "owner_pid IS NOT NULL");
  while (rows.step()) {
    if (!is_alive({.pid = rows.integer(1), .start = rows.integer(2), .boot = rows.text(3)})) continue;
    throw MigrationError(database.file().string() +
                         " was made by an older version of Stepladder, which is still writing "
                         "run " +
                         std::to_string(rows.integer(0)) + " to it (process " + std::to_string(rows.integer(1)) +
                         "); open it again when that run has ended");
  }
}

// Runs the missing migrations, each in one transaction; a new file's are one, so nobody meets it half made.
void migrate(Database& database, std::span<const char* const> steps) {
  const auto newest = static_cast<std::int64_t>(steps.size());
  while (true) {
    if (database.integer("PRAGMA user_version") == version_with_steps_to_move) move_steps(database);
    Transaction transaction(database);
    // Read under the write lock: another process may have been faster.
    const std::int64_t done = version_of(database, newest);
    if (done >= newest) return;
    if (done > 0 && done != version_with_steps_to_move) refuse_older_writers(database);
    if (done == version_with_steps_to_move && has_steps_to_move(database)) continue;
    const std::int64_t next = done == 0 ? newest : done + 1;
    for (std::int64_t step = done; step < next; ++step) database.execute(steps[static_cast<std::size_t>(step)]);
    database.execute("PRAGMA application_id = " + std::to_string(application_id) +
                     "; PRAGMA user_version = " + std::to_string(next));
    transaction.commit();
  }
}

// What these migrations create, and our indices. Any thread; made once for each version of our own migrations.
std::vector<SchemaObject> expected_objects(std::span<const char* const> steps) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, std::size_t>, std::vector<SchemaObject>> known;
  const std::pair<const void*, std::size_t> key{steps.data(), steps.size()};
  const bool are_ours = steps.data() == migration_list.data();
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); are_ours && found != known.end()) return found->second;
  Database fresh{Database::InMemory()};
  migrate(fresh, steps);
  std::vector<SchemaObject> objects = schema_objects(fresh);
  for (const Index& index : indices)
    objects.push_back({std::string(index.name), normalised_definition("CREATE INDEX " + name_and_columns(index))});
  if (are_ours) known[key] = objects;
  return objects;
}

// Throws StorageError if another program has changed what this version of the schema has.
void refuse_strangers(Database& database, std::span<const char* const> steps) {
  const std::vector<std::string> strange = strange_objects(schema_objects(database), expected_objects(steps));
  if (strange.empty()) return;
  throw StorageError(database.file().string() + " was changed by another program: " + strange.front() +
                     (strange.size() > 1 ? " (and " + std::to_string(strange.size() - 1) + " more)" : "") +
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
    Statement known(database, "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?");
    known.bind(index.name);
    if (known.step()) continue;
    // IF NOT EXISTS, since another process may have been faster.
    database.execute("CREATE INDEX IF NOT EXISTS " + name_and_columns(index));
  }
}

}  // namespace

std::span<const char* const> migrations() {
  return migration_list;
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
  database.execute("PRAGMA wal_autocheckpoint = " + std::to_string(longest_log / database.integer("PRAGMA page_size")));
  if (version < newest) {
    if (version > 0) refuse_taken_names(database, steps);
    if (version > 0 && version != version_with_steps_to_move) {  // then they are being moved, and that was done before
      refuse_older_writers(database);
      if (back_up == BackUp::before_migrations) back_up_before_migration(database, version);
    }
    migrate(database, steps);
  }
  create_missing_indices(database);
}

}  // namespace stepladder
