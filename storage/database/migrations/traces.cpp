// Profilers' traces, and the times of single passes.
#include "storage/database/migrations/migrations.h"

namespace stepladder::migration {

// Imported traces of profilers, summed up by storage/traces/attribution.h.
const char traces[] = R"sql(
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

// The anatomy of traces and the slices of a few of their steps; the times of single passes.
const char profiler[] = R"sql(
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
const char without_module[] = R"sql(
ALTER TABLE trace_operators DROP COLUMN module;
)sql";

// The values that a trace's rooflines need: the device, the precision of its products, and the bytes that an operator
// moves.
const char rooflines[] = R"sql(
ALTER TABLE traces ADD COLUMN hardware TEXT;
ALTER TABLE traces ADD COLUMN precision TEXT;
ALTER TABLE trace_operators ADD COLUMN bytes REAL;
)sql";

// How much an operator's time varies from step to step, and where and when a trace was taken: for the run that it is
// of.
const char trace_noise[] = R"sql(
ALTER TABLE trace_operators ADD COLUMN sd_ms REAL;
ALTER TABLE traces ADD COLUMN began_at REAL;
ALTER TABLE traces ADD COLUMN ended_at REAL;
ALTER TABLE traces ADD COLUMN host TEXT;
ALTER TABLE traces ADD COLUMN pid INTEGER;
)sql";

// Predictions of stages, which the runs that measured them are joined to by their recipes; and the recipe of a trace
// that belongs to no run. Recipes are without the values that don't change a step (prediction_store.cpp).
const char predictions[] = R"sql(
ALTER TABLE traces ADD COLUMN recipe TEXT;

CREATE TABLE predictions (
  id INTEGER PRIMARY KEY,
  made_at REAL NOT NULL,
  trace_id INTEGER REFERENCES traces(id) ON DELETE SET NULL,
  run_id INTEGER REFERENCES runs(id) ON DELETE SET NULL,
  stage TEXT NOT NULL,
  device TEXT NOT NULL,
  hardware TEXT,
  base_recipe TEXT NOT NULL,
  recipe TEXT NOT NULL,
  at_most INTEGER NOT NULL,
  step_ms REAL NOT NULL,
  predicted_ms REAL NOT NULL,
  low_ms REAL NOT NULL,
  high_ms REAL NOT NULL
);
)sql";

}  // namespace stepladder::migration
