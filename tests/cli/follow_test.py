#!/usr/bin/env python3
"""`stepladder follow` beside scripts that use stepladder.py: every value once, exactly, whoever is killed."""
import json
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from program import PATIENCE_S, Workplace
from stores import float32

ROOT = pathlib.Path(__file__).resolve().parents[2]

DEMO = """
import math, os, sys, time
import stepladder
steps, pause = int(sys.argv[1]), float(sys.argv[2])
run = stepladder.init(config={"lr": 1e-3})
stepladder.define_metric("val/*", unit="%", direction="higher")
first = run.step
for i in range(first, steps):
    with stepladder.timed_step(tokens=512, step=i):
        time.sleep(pause)
    row = {"loss": math.nan if i % 1000 == 7 else 3 / (i + 1)}
    if i % 100 == 0:
        row["val/acc"] = i / 128
    stepladder.log(row)
"""


# Writes one loss to stores of every kind, step by step: STEPS, PAUSE, the folder, a database of MLflow to begin with.
STORES = r"""
import json, pathlib, sqlite3, sys, time
from stores import event, float32
steps, pause, folder = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
(folder / "tb").mkdir()
events = open(folder / "tb/events.out.tfevents.1.host", "wb", buffering=0)
lines = open(folder / "log.jsonl", "w", buffering=1)
rows = open(folder / "log.csv", "w", buffering=1)
rows.write("step,loss,acc\n")
mlflow = sqlite3.connect(folder / "mlflow.db", timeout=60)
mlflow.execute("INSERT INTO runs (run_uuid, name, status, start_time, lifecycle_stage, experiment_id) "
               "SELECT 'live', 'live', 'RUNNING', 1, 'active', experiment_id FROM runs LIMIT 1")
trackio = sqlite3.connect(folder / "trackio.db", timeout=60)
trackio.execute("PRAGMA journal_mode = WAL")
trackio.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)")
for i in range(1, steps + 1):
    loss, acc = float32(3 / i), i / 64
    data = event(i, "train/loss", loss) + event(i, "acc", acc)
    events.write(data[:len(data) // 3])  # a follower sees it cut
    lines.write(json.dumps({"step": i, "loss": loss, "acc": acc}) + "\n")
    rows.write(f"{i},{loss!r},{acc!r}\n")
    for key, value in (("train_loss", loss), ("acc", acc)):
        mlflow.execute("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, 'live', ?, 0)",
                       (key, value, int(time.time() * 1000), i))
    mlflow.commit()
    trackio.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (strftime('%Y-%m-%dT%H:%M:%f'), 'live', ?, ?)",
                    (i, json.dumps({"loss": loss, "acc": acc})))
    trackio.commit()
    events.write(data[len(data) // 3:])
    time.sleep(pause)
mlflow.execute("UPDATE runs SET status = 'FINISHED' WHERE run_uuid = 'live'")
mlflow.commit()
"""


class Follow(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.journals = self.place.path / "journals"
        self.script = self.place.path / "demo.py"
        self.script.write_text(DEMO)
        self.started = []
        self.addCleanup(lambda: [process.kill() or process.communicate() for process in self.started])

    def demo(self, steps, pause=0, **environment):
        process = subprocess.Popen(
            [sys.executable, self.script, str(steps), str(pause)], stderr=subprocess.DEVNULL,
            env={**self.place.environment, "PYTHONPATH": str(ROOT / "python"), "STEPLADDER_DIR": str(self.journals),
                 **{name: str(value) for name, value in environment.items()}})
        self.started.append(process)
        return process

    def follow(self, *arguments):
        process = self.place.start("follow", self.journals, *arguments)
        self.started.append(process)
        return process

    def query(self, sql):
        with sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True, timeout=60) as database:
            return database.execute(sql).fetchall()

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def steps_in_file(self):
        try:
            return self.query("SELECT count(*) FROM steps")[0][0]
        except sqlite3.OperationalError:
            return 0

    def statuses(self):
        try:
            return [row[0] for row in self.query("SELECT status FROM runs ORDER BY id")]
        except sqlite3.OperationalError:
            return []

    def check(self, steps, ranks=1, superseded=0):
        """Every value of the demo is there once, to the bit."""
        self.assertEqual(self.query("SELECT count(*) FROM runs"), [(1,)])
        rows = self.query("SELECT step, loss, nan_mask & 1, tokens, dt_ms FROM latest_steps ORDER BY step")
        self.assertEqual([row[0] for row in rows], list(range(steps)))
        for step, loss, is_nan, tokens, dt_ms in rows:
            self.assertEqual((loss, is_nan), (None, 1) if step % 1000 == 7 else (3 / (step + 1), 0))
            self.assertEqual(tokens, 512)
            self.assertIsNotNone(dt_ms)
        accuracy = self.query("SELECT step, value FROM metric_points WHERE name = 'val/acc' ORDER BY step")
        self.assertEqual(accuracy, [(i, i / 128) for i in range(0, steps, 100)])
        self.assertEqual(self.query("SELECT unit, direction FROM metrics WHERE name = 'val/acc'"), [("%", "higher")])
        if ranks > 1:
            for rank in range(ranks):
                times = self.query(f"SELECT step FROM metric_points WHERE name = 'rank/{rank}/dt_ms' ORDER BY step")
                self.assertEqual([row[0] for row in times], list(range(steps)))
        if superseded is not None:
            self.assertEqual(self.query("SELECT count(*) FROM superseded_steps"), [(superseded,)])
            self.assertEqual(self.query("SELECT count(*) FROM superseded_metric_values"), [(superseded,)])

    def test_two_ranks_live(self):
        follower = self.follow("--json")
        ranks = [self.demo(10000, RANK=rank, WORLD_SIZE=2, STEPLADDER_RUN_ID="two") for rank in range(2)]
        for rank in ranks:
            self.assertEqual(rank.wait(timeout=PATIENCE_S), 0)
        complete = "SELECT count(*) FROM metric_points WHERE name LIKE 'rank/%/dt_ms'"
        self.until(lambda: self.statuses() == ["finished"] and self.query(complete) == [(20000,)])
        follower.send_signal(signal.SIGINT)
        out, err = follower.communicate(timeout=PATIENCE_S)
        self.assertEqual(follower.returncode, 0, err)
        self.check(10000, ranks=2)
        run, = json.loads(out)
        self.assertEqual((run["status"], run["steps"], run["ranks"], run["tokens_per_step"]), ("finished", 10000, 2, 512))
        self.assertEqual(set(run["rank_dt_ms_median"]), {"0", "1"})
        self.assertIn(run["slowest_rank"], (0, 1))
        self.assertEqual(run["sync"], "device")

    def test_the_follower_is_killed(self):
        script = self.demo(3000, 0.001)
        choose = random.Random(16)
        for _ in range(20):
            follower = self.follow()
            before = self.steps_in_file()
            self.until(lambda: self.steps_in_file() > before or script.poll() is not None)
            time.sleep(choose.uniform(0, 0.1))
            follower.kill()
            follower.communicate()
        self.assertEqual(script.wait(timeout=PATIENCE_S), 0)
        status, _, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual(status, 0, err)
        self.check(3000)
        self.assertEqual(self.statuses(), ["finished"])

    def test_the_script_is_killed(self):
        follower = self.follow()
        choose = random.Random(17)
        steps = 1000
        for _ in range(20):
            script = self.demo(10 ** 9, 0.001, STEPLADDER_RUN_ID="killed")
            before = self.steps_in_file()
            self.until(lambda: self.steps_in_file() > before)
            time.sleep(choose.uniform(0, 0.1))
            script.kill()
            script.wait()
        self.until(lambda: self.statuses() == ["interrupted"])
        reason = self.query("SELECT reason FROM runs")[0][0]
        # The last attempt may have been killed before it logged anything.
        self.assertTrue(any(f"pid {process.pid})" in reason for process in self.started), reason)
        last = self.query("SELECT max(step) FROM steps")[0][0]
        steps = max(steps, (last // 100 + 2) * 100)
        self.assertEqual(self.demo(steps, STEPLADDER_RUN_ID="killed").wait(timeout=PATIENCE_S), 0)
        self.until(lambda: self.statuses() == ["finished"])
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=PATIENCE_S)
        self.check(steps, superseded=None)  # a timed step whose log call was lost is timed again

    def test_a_running_run_is_running_and_then_interrupted(self):
        script = self.demo(10 ** 9, 0.01)
        self.until(lambda: self.journals.exists() and list(self.journals.glob("*/rank-0.1.jsonl")))
        self.until(lambda: self.place.run("follow", self.journals, "--once")[0] == 0)
        self.assertEqual([run["status"] for run in self.place.json("runs")], ["running"])
        script.kill()
        script.wait()
        status, out, err = self.place.run("follow", self.journals, "--once", "--json")
        self.assertEqual((status, [run["status"] for run in json.loads(out)]), (0, ["interrupted"]), err)

    def test_import_reads_the_same(self):
        self.assertEqual(self.demo(300).wait(timeout=PATIENCE_S), 0)
        status, out, err = self.place.run("import", self.journals, "--json")
        self.assertEqual(status, 0, err)
        self.assertEqual(json.loads(out)["runs"][0]["status"], "finished")
        self.check(300)

    def test_other_trackers_stores_and_the_follower_is_killed(self):
        steps, folder = 400, self.journals
        folder.mkdir()
        shutil.copy(ROOT / "tests/importers/stores/mlflow.db", folder / "mlflow.db")
        self.script.write_text(STORES)
        writer = subprocess.Popen([sys.executable, self.script, str(steps), "0.005", str(folder)],
                                  env={**self.place.environment, "PYTHONPATH": str(ROOT / "tests/cli")})
        self.started.append(writer)
        choose = random.Random(18)
        for _ in range(12):
            follower = self.follow()
            before = self.steps_in_file()
            self.until(lambda: self.steps_in_file() > before or writer.poll() is not None)
            time.sleep(choose.uniform(0, 0.1))
            follower.kill()
            follower.communicate()
        self.assertEqual(writer.wait(timeout=PATIENCE_S), 0)
        foreign = {file: file.read_bytes() for file in folder.glob("*") if file.is_file()}
        status, out, err = self.place.run("follow", folder, "--once", "--json")
        self.assertEqual(status, 0, err)
        self.assertEqual({file: file.read_bytes() for file in folder.glob("*") if file.is_file()}, foreign)
        formats = {run["format"]: run["id"] for run in json.loads(out) if run["name"] in ("tb", "log", "mlflow live", "trackio live")}
        self.assertEqual(set(formats), {"tensorboard", "log", "csv", "mlflow", "trackio"}, (out, err))
        self.assertEqual(len(json.loads(out)), 5 + 4, "the four runs that were in the database")
        for form, run in formats.items():
            with self.subTest(form):
                expected = [(i, float32(3 / i)) for i in range(1, steps + 1)]
                self.assertEqual(self.query(f"SELECT step, loss FROM steps WHERE run_id = {run} ORDER BY step"), expected)
                self.assertEqual(self.query(f"SELECT step, value FROM metric_points WHERE run_id = {run} AND name = 'acc' ORDER BY step"),
                                 [(i, i / 64) for i in range(1, steps + 1)])
                self.assertEqual(self.query(f"SELECT count(*) FROM superseded_steps WHERE run_id = {run}"), [(0,)])
                self.assertEqual(self.query("SELECT status FROM runs WHERE id = " + str(run)), [("finished",)])
        self.assertEqual(self.query("SELECT count(*) FROM superseded_metric_values"), [(0,)])

    def test_nothing_there(self):
        status, out, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("found nothing to follow", err)


if __name__ == "__main__":
    unittest.main()
