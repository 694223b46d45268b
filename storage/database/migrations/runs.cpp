// Runs and ladders, users' marks, and the cached summaries of runs.
#include "storage/database/migrations/migrations.h"

namespace stepladder::migration {

const char first_tables[] = R"sql(
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
const char life_cycle[] = R"sql(
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
const char summaries_with_checks[] = R"sql(
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

// Figures of coarse step times are of blocks of steps, so the cache is rebuilt.
const char step_grain[] = R"sql(
DELETE FROM summaries;
ALTER TABLE summaries ADD COLUMN dt_grain_ms REAL NOT NULL DEFAULT 0;
)sql";

// Users' marks on their runs; no list shows runs in the bin.
const char curation[] = R"sql(
CREATE TABLE curation (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  tags TEXT,
  note TEXT,
  pinned INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0,
  deleted_at REAL
);
)sql";

// A random identity of each run, and a mark for runs that no list shows, since their rows are still being written or
// deleted in batches.
const char identities[] = R"sql(
ALTER TABLE runs ADD COLUMN uid TEXT;
ALTER TABLE runs ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
)sql";

// A ladder whose runs are trained elsewhere is recognised by its uid.
const char ladder_uids[] = R"sql(
ALTER TABLE ladders ADD COLUMN uid TEXT;
UPDATE ladders SET uid = lower(hex(randomblob(16)));
)sql";

// A column's CHECK changes with its column. Runs that a text only reports were called finished.
const char reported_runs[] = R"sql(
DROP INDEX IF EXISTS runs_not_over;
ALTER TABLE runs ADD COLUMN any_status TEXT NOT NULL DEFAULT 'interrupted' CHECK (any_status IN
  ('queued', 'running', 'finished', 'stopped', 'failed', 'interrupted', 'reported'));
UPDATE runs SET any_status = iif(status = 'finished' AND reason = 'reported: its figure has no steps behind it',
  'reported', status);
ALTER TABLE runs DROP COLUMN status;
ALTER TABLE runs RENAME COLUMN any_status TO status;
)sql";

// Changes of a checkout that were measured one after the other: a ladder with further columns.
const char tries[] = R"sql(
CREATE TABLE try_series (
  ladder_id INTEGER PRIMARY KEY REFERENCES ladders(id) ON DELETE CASCADE,
  checkout TEXT NOT NULL,
  plan TEXT NOT NULL,
  begun_at REAL,
  ended_at REAL,
  answer TEXT
);

CREATE TABLE tries (
  ladder_id INTEGER NOT NULL REFERENCES ladders(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  message TEXT NOT NULL,
  parent INTEGER NOT NULL,
  tree TEXT NOT NULL,
  commit_hash TEXT,
  patch TEXT,
  patch_bytes INTEGER NOT NULL,
  begun_at REAL,
  ended_at REAL,
  verdict TEXT,
  answer TEXT,
  PRIMARY KEY (ladder_id, number)
);

CREATE TABLE try_runs (
  ladder_id INTEGER NOT NULL REFERENCES ladders(id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  during INTEGER NOT NULL,
  state INTEGER NOT NULL,
  run_id INTEGER REFERENCES runs(id) ON DELETE SET NULL,
  value REAL,
  others TEXT,
  wall_s REAL,
  exit_status INTEGER NOT NULL,
  PRIMARY KEY (ladder_id, place)
) WITHOUT ROWID;
)sql";

// What was uncommitted in the checkout that a run was started in.
const char patches[] = R"sql(
CREATE TABLE patches (
  run_id INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  commit_hash TEXT,
  patch TEXT,
  patch_bytes INTEGER NOT NULL,
  left_out TEXT
);
)sql";

// The rung that a rung was built on; NULL: not known, so it is inferred from the recipes.
const char rungs_below[] = R"sql(
ALTER TABLE runs ADD COLUMN stands_on INTEGER;
)sql";

// The time of a step by the wall clock.
const char wall_clock[] = R"sql(
DELETE FROM summaries;
ALTER TABLE summaries ADD COLUMN wall_ms_median REAL;
)sql";

// A step by the wall clock has no evaluation in it, and a timer that shows 0 stood still.
const char wall_clock_of_steps[] = R"sql(
DELETE FROM summaries;
)sql";

// How often a verification may look at the runs that it launches; NULL: it was launched by none.
const char looks[] = R"sql(
ALTER TABLE runs ADD COLUMN looks_up_to INTEGER;
)sql";

}  // namespace stepladder::migration
