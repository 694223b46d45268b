// The tables through which processes and machines communicate.
#include "storage/database/migrations/migrations.h"

namespace stepladder::migration {

// Other processes see in which order runs wait and what is paused, and ask for another order.
const char queue[] = R"sql(
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

// The positions up to which journals are stored.
const char followed[] = R"sql(
CREATE TABLE followed (
  source TEXT PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  bytes INTEGER NOT NULL,
  state TEXT
) WITHOUT ROWID;
)sql";

// Machines, what was started on them, and the runs that belong to it.
const char machines[] = R"sql(
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

// An experiment of `record run` on a machine has a kind of its own. It was called a setup before.
const char experiments_on_machines[] = R"sql(
ALTER TABLE far_runs RENAME TO far_runs_to_move;

CREATE TABLE far_runs (
  uid TEXT PRIMARY KEY,
  alias TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('watch', 'train', 'ladder', 'sweep', 'record', 'setup')),
  name TEXT,
  request TEXT NOT NULL,
  sent TEXT,
  state TEXT,
  asked_at REAL NOT NULL,
  is_started INTEGER NOT NULL DEFAULT 0,
  is_over INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

INSERT INTO far_runs (uid, alias, kind, name, request, sent, state, asked_at, is_started, is_over)
  SELECT uid, alias, CASE WHEN kind = 'setup' AND name = 'record on ' || alias THEN 'record' ELSE kind END, name, request,
    sent, state, asked_at, is_started, is_over FROM far_runs_to_move;

DROP TABLE far_runs_to_move;
)sql";

// So has a command of a series of tries on a machine.
const char tries_on_machines[] = R"sql(
ALTER TABLE far_runs RENAME TO far_runs_to_move;

CREATE TABLE far_runs (
  uid TEXT PRIMARY KEY,
  alias TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('watch', 'train', 'ladder', 'sweep', 'record', 'setup', 'try')),
  name TEXT,
  request TEXT NOT NULL,
  sent TEXT,
  state TEXT,
  asked_at REAL NOT NULL,
  is_started INTEGER NOT NULL DEFAULT 0,
  is_over INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

INSERT INTO far_runs (uid, alias, kind, name, request, sent, state, asked_at, is_started, is_over)
  SELECT uid, alias, kind, name, request, sent, state, asked_at, is_started, is_over FROM far_runs_to_move;

DROP TABLE far_runs_to_move;
)sql";

}  // namespace stepladder::migration
