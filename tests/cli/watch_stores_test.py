#!/usr/bin/env python3
"""`stepladder watch` finds the stores that its program opens: their values join what the program prints."""
import pathlib
import shutil
import sqlite3
import sys
import time
import unittest

from program import PATIENCE_S, Workplace
from stores import float32

ROOT = pathlib.Path(__file__).resolve().parents[2]

# STEPS, the folder, KIND. Prints rounded losses and step times, and keeps exact losses in a store. Waits for the file "go"
# after half of the steps.
PROGRAM = """
import pathlib, sqlite3, subprocess, sys, time
steps, folder, kind = int(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
if len(sys.argv) == 4:  # the store is a child's
    sys.exit(subprocess.run([sys.executable, *sys.argv, "child"]).returncode)
from stores import event
writers = []
if kind == "mlflow":
    database = sqlite3.connect(folder / "mlflow.db", timeout=60)
    database.execute("INSERT INTO runs (run_uuid, name, status, start_time, lifecycle_stage, experiment_id) "
                     "SELECT 'live', 'live', 'RUNNING', ?, 'active', experiment_id FROM runs LIMIT 1", [int(time.time() * 1000)])
    def write(i):
        for key, value in (("train_loss", 3 / i), ("acc", i / 64)):
            database.execute("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, 0, 'live', ?, 0)",
                             (key, value, i))
        database.commit()
elif kind == "csv":
    table = open(folder / "log.csv", "w", buffering=1)
    table.write("step,loss,acc\\n")
    def write(i):
        table.write(f"{i},{3 / i!r},{i / 64}\\n")
elif kind == "lightning":  # its CSVLogger keeps rows back, and the file open only while it writes
    import os
    os.chdir(folder)
    pathlib.Path("lightning_logs/version_0").mkdir(parents=True)
    rows = ["step,train_loss,acc\\n"]
    def write(i):
        rows.append(f"{i},{3 / i!r},{i / 64}\\n")
        if i % 20 == 0:
            with open("lightning_logs/version_0/metrics.csv", "a") as table:
                table.write("".join(rows))
            rows.clear()
elif kind == "journal":
    import stepladder
    stepladder.init(dir=folder, name="of the script", config={"lr": 0.5})
    def write(i):
        stepladder.log({"loss": 3 / i, "acc": i / 64}, step=i)
else:
    for name in kind.split("+"):
        (folder / name).mkdir()
        writers.append(open(folder / name / "events.out.tfevents.1.host", "wb", buffering=0))
    def write(i):
        for each, writer in enumerate(writers):
            writer.write(event(i, "train/loss", 3 / i + each) + event(i, "acc", i / 64))
for i in range(1, steps + 1):
    print(f"step {i}/{steps} | loss {3 / i:.2f} | dt 12.50 ms", flush=True)
    write(i)
    while i == steps // 2 and not (folder / "go").exists():
        time.sleep(0.01)
"""
STEPS = 200


class WatchedStores(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.place.environment["PYTHONPATH"] = f"{ROOT / 'tests/cli'}:{ROOT / 'python'}"
        self.folder = self.place.path / "stores"
        self.folder.mkdir()
        self.script = self.place.path / "train.py"
        self.script.write_text(PROGRAM)

    def watch(self, kind, *options):
        tracker = self.place.start("watch", "--name", "watched", *options, "--", sys.executable, self.script, STEPS,
                                   self.folder, kind)
        self.addCleanup(lambda: (self.go(), tracker.kill(), tracker.wait(), tracker.stdout.close(), tracker.stderr.close()))
        return tracker

    def query(self, sql):
        with sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True, timeout=60) as database:
            return database.execute(sql).fetchall()

    def until(self, sql, expected):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = self.query(sql)
            except sqlite3.OperationalError:
                found = None
            if found == expected:
                return
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.05)

    def go(self):
        (self.folder / "go").touch()

    def end(self, tracker, status=0):
        out, err = tracker.communicate(timeout=PATIENCE_S)
        self.assertEqual(tracker.returncode, status, err)
        self.assertIn(f"step {STEPS}/{STEPS}", out)
        return err

    def check(self, run, loss):
        self.assertEqual(self.query(f"SELECT step, loss FROM steps WHERE run_id = {run} ORDER BY step"),
                         [(i, loss(i)) for i in range(1, STEPS + 1)])
        self.assertEqual(self.query(f"SELECT step, value FROM metric_points WHERE run_id = {run} AND name = 'acc' ORDER BY step"),
                         [(i, i / 64) for i in range(1, STEPS + 1)])
        self.assertEqual(self.query(f"SELECT DISTINCT dt_ms FROM steps WHERE run_id = {run}"), [(12.5,)])
        self.assertEqual(self.query(f"SELECT count(*) FROM superseded_steps WHERE run_id = {run}"), [(0,)])
        self.assertEqual(self.query(f"SELECT name, status FROM runs WHERE id = {run}"), [("watched", "finished")])

    half_is_joined = "SELECT count(*) FROM metric_points WHERE run_id = 1 AND name = 'acc'"

    def watch_by_two_trackers(self, kind):
        """The first is killed half-way, the second records the rest."""
        tracker = self.watch(kind)
        self.until(self.half_is_joined, [(STEPS // 2,)])
        tracker.kill()
        tracker.wait()
        attached = self.place.start("watch", "--attach", "1")
        self.addCleanup(attached.kill)
        self.go()
        _, err = attached.communicate(timeout=PATIENCE_S)
        self.assertEqual(attached.returncode, 0, err)

    def test_a_store_joins_the_run_though_the_tracker_is_killed(self):
        self.watch_by_two_trackers("tb")
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])
        self.check(1, lambda i: float32(3 / i))

    def test_a_journal_joins_the_run_though_the_tracker_is_killed(self):
        self.watch_by_two_trackers("journal")
        self.check(1, lambda i: 3 / i)
        self.assertEqual(self.query("SELECT json_extract(recipe, '$.lr') FROM runs"), [(0.5,)])
        status, _, err = self.place.run("follow", "--once", self.folder)  # has it all
        self.assertEqual(status, 0, err)
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])
        self.check(1, lambda i: 3 / i)

    def test_a_database_with_older_runs(self):
        shutil.copy(ROOT / "tests/importers/stores/mlflow.db", self.folder / "mlflow.db")
        tracker = self.watch("mlflow")
        self.until(self.half_is_joined, [(STEPS // 2,)])
        self.go()
        self.end(tracker)
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])
        self.check(1, lambda i: 3 / i)

    def test_a_table(self):
        tracker = self.watch("csv")
        self.until("SELECT count(*) > 0 FROM metric_points WHERE run_id = 1 AND name = 'acc'", [(1,)])
        self.go()
        self.end(tracker)
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])
        self.check(1, lambda i: 3 / i)

    def test_a_table_that_is_open_for_moments(self):
        tracker = self.watch("lightning")
        self.until("SELECT count(*) > 0 FROM metric_points WHERE run_id = 1 AND name = 'acc'", [(1,)])
        self.go()
        self.end(tracker)
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])
        self.check(1, lambda i: 3 / i)

    def test_the_second_of_two_stores_is_a_run_of_its_own(self):
        tracker = self.watch("tb+tc")
        self.until("SELECT run_id, count(*) FROM metric_points WHERE name = 'acc' GROUP BY run_id ORDER BY run_id",
                   [(1, STEPS // 2), (2, STEPS // 2)])
        self.go()
        self.end(tracker)
        self.assertEqual(self.query("SELECT id, name, source_path FROM runs ORDER BY id"),
                         [(1, "watched", None), (2, "watched tc", str(self.folder.resolve() / "tc"))])
        self.check(1, lambda i: float32(3 / i))
        self.assertEqual(self.query("SELECT step, loss FROM steps WHERE run_id = 2 ORDER BY step"),
                         [(i, float32(3 / i + 1)) for i in range(1, STEPS + 1)])

    def test_no_stores(self):
        self.go()
        self.end(self.watch("tb", "--no-stores"))
        self.assertEqual(self.query("SELECT step, loss FROM steps WHERE run_id = 1 ORDER BY step"),
                         [(i, float(f"{3 / i:.2f}")) for i in range(1, STEPS + 1)])
        self.assertEqual(self.query("SELECT count(*) FROM metric_points WHERE name = 'acc'"), [(0,)])


if __name__ == "__main__":
    unittest.main()
