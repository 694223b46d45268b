"""Measures a file of many long runs: bytes a step, how long `runs --json` and deleting a run take, and how long a live
writer waits meanwhile: python tests/bench/size.py [RUNS] [STEPS A RUN] [BUILD]. 1000 and 100000 take 14 GB in
TMPDIR and some minutes; the default is small."""
import contextlib
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
COLUMNS = ("run_id, step, loss, dt_ns, tokens, lr_e12, grad_norm_e9, at_ms, data_us, forward_us, backward_us, "
           "optimizer_us")
PROGRAM = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "build") / "stepladder"


def steps_of(run):
    """As a training on a GPU records them: losses and norms are float32."""
    at = 1_790_000_000_000 + run * 10_000_000
    for step in range(1, STEPS + 1):
        dt = round(random.gauss(50e6, 1e6))
        at += dt / 1e6
        yield (run, step, 3 + random.random(), dt, 524_288, round(6e8 * (1 - step / STEPS)), round(random.gauss(1e9, 2e8)),
               round(at), round(random.gauss(150, 20)), round(random.gauss(15000, 300)), round(random.gauss(30000, 300)),
               round(random.gauss(4000, 300)))


class LiveWriter:
    """Another program's training: commits a step every few milliseconds, and notes how long each commit took."""

    def __init__(self, database, run):
        self.database, self.run, self.waits, self.locked, self.ended = database, run, [], 0, threading.Event()
        self.thread = threading.Thread(target=self.write)
        self.thread.start()

    def write(self):
        with contextlib.closing(sqlite3.connect(self.database, timeout=0, isolation_level=None)) as database:
            step = STEPS
            while not self.ended.is_set():
                step += 1
                begun = time.monotonic()
                while True:
                    try:
                        database.execute("insert into steps (run_id, step, loss) values (?, ?, 1)", (self.run, step))
                        break
                    except sqlite3.OperationalError:
                        self.locked += 1
                        time.sleep(0.001)
                self.waits.append(1000 * (time.monotonic() - begun))
                time.sleep(0.005)

    def end(self):
        self.ended.set()
        self.thread.join()
        return {"commits": len(self.waits), "times_locked": self.locked, "median_ms": round(statistics.median(self.waits), 2),
                "longest_ms": round(max(self.waits), 1)}


def main():
    with tempfile.TemporaryDirectory(prefix="stepladder-size-") as name:
        database = pathlib.Path(name) / "runs.db"
        environment = dict(os.environ, STEPLADDER_DB=str(database), XDG_CACHE_HOME=name, XDG_CONFIG_HOME=name)

        def timed(*arguments):
            begun = time.monotonic()
            done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{arguments}: {done.stderr}")
            return 1000 * (time.monotonic() - begun), done.stdout

        database.touch()
        timed("runs", "--json")
        with contextlib.closing(sqlite3.connect(database)) as file:
            empty = database.stat().st_size
            for run in range(1, RUNS + 1):
                file.execute("insert into runs (id, name, status, source, created_at, tokens_per_step) values "
                             "(?, ?, 'finished', 'launched', ?, 524288)", (run, f"run {run}", run))
                if run == 1:
                    file.executemany(f"insert into steps ({COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", steps_of(run))
                else:  # the same again, which takes less time than making them
                    file.execute(f"insert into steps ({COLUMNS}) select ?, {COLUMNS.split(', ', 1)[1]} from steps "
                                 "where run_id = 1", (run,))
                file.commit()
            file.execute("pragma wal_checkpoint(truncate)")
        result = {"runs": RUNS, "steps": RUNS * STEPS,
                  "bytes_a_step": round((database.stat().st_size - empty) / RUNS / STEPS, 1)}
        first_ms, _ = timed("runs", "--json")
        result["first_runs_json_ms"] = round(first_ms)
        result["runs_json_ms"] = round(statistics.median(timed("runs", "--json")[0] for _ in range(9)), 1)
        result["version_ms"] = round(statistics.median(timed("--version")[0] for _ in range(9)), 1)
        with contextlib.closing(sqlite3.connect(database)) as file:
            file.execute("insert into curation (run_id, deleted_at) values (1, 1.0)")
            file.commit()
        alone = LiveWriter(database, 2)
        time.sleep(2)
        result["writer_alone"] = alone.end()
        beside = LiveWriter(database, 3)
        result["delete_a_run_ms"] = round(timed("bin", "--empty", "--yes")[0])
        result["writer_beside"] = beside.end()
        backing_up = LiveWriter(database, 4)
        result["backup_ms"] = round(timed("doctor", "--backup", pathlib.Path(name) / "copy.db")[0])
        result["writer_beside_backup"] = backing_up.end()
        print(json.dumps(result, indent=1))


main()
