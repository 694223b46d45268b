// The tables for what is recorded of a run besides its steps.
#include "storage/database/migrations/migrations.h"

namespace stepladder::migration {

// Output of watched programs.
const char console[] = R"sql(
CREATE TABLE console (
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  at REAL,
  text BLOB NOT NULL,
  PRIMARY KEY (run_id, part)
);
)sql";

// The time of a step by operator.
const char profiles[] = R"sql(
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

// The use that other programs made of the machine meanwhile.
const char contention[] = R"sql(
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

// The part of others' use that was the program itself that trained the run.
const char own_share[] = R"sql(
ALTER TABLE lanes ADD COLUMN program_cores REAL;
ALTER TABLE summaries ADD COLUMN program_cores REAL;
)sql";

// All other numbers that a run logs. `metric_figures` and `metric_overviews` are derived from the values.
const char metrics[] = R"sql(
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

}  // namespace stepladder::migration
