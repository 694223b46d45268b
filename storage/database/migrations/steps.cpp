// Steps, and the overviews that are derived from them.
#include "storage/database/migrations/migrations.h"

namespace stepladder::migration {

// Levels of long series (storage/analysis/overview.h), derived from steps as summaries are.
const char overviews[] = R"sql(
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

// Steps in less space (step_rows.h says how their values are stored). move_steps moves the old rows, then the old table
// is dropped.
const char compact_steps[] = R"sql(
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

const char without_moved_steps[] = "DROP TABLE steps_to_move";

}  // namespace stepladder::migration
