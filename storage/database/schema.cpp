#include "storage/database/schema.h"

#include <array>
#include <string>
#include <string_view>

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

constexpr std::array migration_list{first_tables, life_cycle, summaries_with_checks, curation, overviews,
                                    console,      profiles};

struct Index {
  std::string_view name;
  std::string_view on;
};

constexpr std::array indices{
    Index{"runs_by_ladder", "runs(ladder_id, rung, repeat)"},
    Index{"runs_in_bin", "curation(deleted_at) WHERE deleted_at IS NOT NULL"},
    Index{"runs_not_over", "runs(status) WHERE status IN ('queued', 'running')"},
};

bool is_empty(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master") == 0;
}

// Returns the file's version or throws. Changes nothing.
std::int64_t version_of(Database& database, std::int64_t newest) {
  // Otherwise another process's first migration may happen between the two reads.
  Transaction one_state(database, Transaction::Kind::read);
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

void create_missing_indices(Database& database) {
  for (const Index& index : indices) {
    Statement known(database, "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?");
    known.bind(index.name);
    if (known.step()) continue;
    database.execute("CREATE INDEX IF NOT EXISTS " + std::string(index.name) + " ON " + std::string(index.on));
  }
}

}  // namespace

std::span<const char* const> migrations() {
  return migration_list;
}

void prepare_schema(Database& database, std::span<const char* const> steps) {
  const auto newest = static_cast<std::int64_t>(steps.size());
  const std::int64_t version = version_of(database, newest);
  if (database.read_only()) {
    if (version < newest)
      throw StorageError(database.file().string() + (version == 0
                                                         ? " is an empty database"
                                                         : " was written by an older version of Stepladder and "
                                                           "has to be opened for writing once"));
    return;
  }

  database.use_write_ahead_log();
  if (version < newest) {
    while (true) {
      Transaction transaction(database);
      // Read again under the write lock: another process may have been faster.
      const std::int64_t done = version_of(database, newest);
      if (done >= newest) break;
      database.execute(steps[static_cast<std::size_t>(done)]);
      database.execute("PRAGMA application_id = " + std::to_string(application_id) +
                       "; PRAGMA user_version = " + std::to_string(done + 1));
      transaction.commit();
    }
  }
  create_missing_indices(database);
}

}  // namespace stepladder
