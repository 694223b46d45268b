#!/usr/bin/env python3
"""`stepladder follow` beside scripts that use stepladder.py: every value once, exactly, whoever is killed."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest
import zlib

from program import PATIENCE_S, Workplace
from stores import event, float32

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


def line(**fields):
    """A line of a journal."""
    text = json.dumps(fields, separators=(",", ":"))
    return f"{text}\t{zlib.crc32(text.encode()):08x}\n".encode()


def logged(steps):
    return b"".join(line(e="log", s=step, t=1000.0 + step, v={"loss": 3 / (step + 1)}) for step in steps)


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

    def test_a_resumed_wandb_run_is_one_run(self):
        stored = ROOT / "tests/importers/stores/wandb/offline-run-20261121_172753-golden0/run-golden0.wandb"
        for begun in ("20261121_172753", "20261122_090000"):  # it logs the same steps again
            folder = self.place.path / "wandb" / f"offline-run-{begun}-golden0"
            folder.mkdir(parents=True)
            shutil.copy(stored, folder)
        shown = []
        for command in (("follow", "--once"), ("import",)):
            database = self.place.path / f"{command[0]}.db"
            self.place.run("--db", database, *command, self.place.path / "wandb")
            runs = self.place.json("--db", database, "runs")
            self.assertEqual(len(runs), 1, runs)
            shown.append(self.place.json("--db", database, "show", runs[0]["id"], "--steps")["data"])
        self.assertGreater(len(shown[0]), 3)
        self.assertEqual([(row["step"], row["loss"]) for row in shown[0]], [(row["step"], row["loss"]) for row in shown[1]])

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

    def write_journal(self, lines, name="j", **header):
        folder = self.journals / name
        folder.mkdir(parents=True, exist_ok=True)
        head = line(e="run", v=1, uid=hashlib.md5(name.encode()).hexdigest(), id=name, name=name, attempt=1, rank=0, world=1, t=1000.0, **header)
        (folder / "rank-0.1.jsonl").write_bytes(head + lines)
        return folder

    def test_import_reads_the_same_behind_damage(self):
        dice = random.Random(35)
        ended = line(e="end", t=2000.0, status="finished", code=0)
        mib = 1 << 20
        holes = {"zeros": bytes(10 * mib), "random": dice.randbytes(3 * mib + 17), "x": b"x" * (2 * mib + 1),
                 "random_lines": dice.randbytes(2 * mib).replace(b"\n", b"?") + b"\n", "short": b"damage\n",
                 "zeros_in_text": (b"x" * 1000 + bytes(50)) * 3000, "exact": b"y" * mib, "exact_zeros": bytes(mib)}
        journals = {name: logged(range(20)) + hole + b"\n" + logged(range(20, 40)) + ended for name, hole in holes.items()}
        journals |= {name + "_unended": logged(range(20)) + hole + logged(range(20, 40)) + ended
                     for name, hole in holes.items() if not name.endswith("lines")}
        journals["several"] = b"".join(logged(range(10 * i, 10 * i + 10)) + hole + b"\n" for i, hole in enumerate(holes.values()))
        for name, lines in journals.items():
            self.write_journal(lines, name)
        head = self.write_journal(logged(range(20)) + ended, "head") / "rank-0.1.jsonl"
        head.write_bytes(bytes(2 * mib) + head.read_bytes())
        imported = self.place.path / "imported.db"
        status, _, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual(status, 0, err)
        self.assertIn("damaged bytes", err)
        for folder in sorted(self.journals.iterdir()):
            status, _, error = self.place.run("import", folder, "--db", imported)
            self.assertEqual(status, 0, error)
        steps = "SELECT name, step, loss FROM steps JOIN runs ON id = run_id ORDER BY name, step"
        with sqlite3.connect(imported) as database:
            self.assertEqual(self.query(steps), database.execute(steps).fetchall(), err)
        self.assertEqual(self.query("SELECT count(*) FROM steps JOIN runs ON id = run_id WHERE name = 'zeros'"), [(40,)])

    def test_a_reader_that_is_killed_in_damage_goes_on(self):
        self.write_journal(logged(range(2000)) + os.urandom(64 << 20).replace(b"\n", b"?") + b"\n" + logged(range(2000, 4000)) +
                           line(e="end", t=9000.0, status="finished", code=0))
        for pause in (0.3, 0.5, 0.7, 0.9):
            follower = self.follow()
            time.sleep(pause)
            follower.kill()
            follower.communicate()
        status, _, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual(status, 0, err)
        self.assertEqual(self.query("SELECT count(*), min(step), max(step) FROM steps"), [(4000, 0, 3999)])
        self.assertEqual(self.query("SELECT count(*) FROM superseded_steps"), [(0,)])

    def test_once_owns_no_run(self):
        for name, header in (("nobody", {}), ("elsewhere", {"pid": 17, "pid_start": 5, "boot": "another"})):
            self.write_journal(logged(range(5)), name, **header)
        for _ in range(2):
            status, _, err = self.place.run("follow", self.journals, "--once")
            self.assertEqual(status, 0, err)
            for status, owner, reason in self.query("SELECT status, owner_pid, reason FROM runs ORDER BY id"):
                self.assertEqual((status, owner), ("interrupted", None), reason)
                self.assertIn("nobody follows it any more; last step", reason)
                self.assertNotIn("exited", reason)
            with open(self.journals / "nobody/rank-0.1.jsonl", "ab") as journal:
                journal.write(logged(range(5, 7)))

    def test_pipes_keep_nobody_waiting(self):
        self.write_journal(logged(range(5)) + line(e="end", t=2000.0, status="finished", code=0))
        pipes = ["j/rank-1.1.jsonl", "k/rank-0.1.jsonl", "a.csv", "b.jsonl", "c.log", "tb/events.out.tfevents.1.host", "offline-run-1/x.wandb",
                 "mlflow.db", "mlruns/0/run/meta.yaml", "t.json", "project.db", "real.db-wal", "real.db-journal"]
        for name in pipes:
            (self.journals / name).parent.mkdir(parents=True, exist_ok=True)
            os.mkfifo(self.journals / name)
        shutil.copy(ROOT / "tests/importers/stores/mlflow.db", self.journals / "real.db")
        status, _, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual(status, 0, err)
        for command in ("follow", self.journals), ("import", self.journals / "c.log"), ("import", "-"):
            with self.subTest(command), subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE) as writer:
                process = self.place.start(*command, stdin=writer.stdout)
                self.started.append(process)
                time.sleep(1)
                process.send_signal(signal.SIGTERM)
                _, err = process.communicate(timeout=PATIENCE_S)
                self.assertIn(process.returncode, (0, 130), err)
                writer.kill()
        status, _, err = self.place.run("import", self.journals, "--db", self.place.path / "imported.db")
        self.assertEqual(status, 0, err)
        # A pipe that is named is read.
        writer = subprocess.Popen(["sh", "-c", 'sleep 1; printf "step,loss\\n1,3.5\\n2,3.25\\n" > "$0"', self.journals / "a.csv"])
        status, _, err = self.place.run("import", self.journals / "a.csv", "--db", self.place.path / "named.db")
        self.assertEqual((status, writer.wait()), (0, 0), err)

    def rows(self):
        """The steps and losses of each run, by its name."""
        try:
            found = self.query("SELECT name, step, loss FROM steps JOIN runs ON id = run_id ORDER BY run_id, step")
        except sqlite3.OperationalError:
            return {}
        runs = {}
        for name, step, loss in found:
            runs.setdefault(name, []).append((step, loss))
        return runs

    def test_the_last_row_is_there_while_nothing_follows_it(self):
        self.journals.mkdir()
        writers = {"c": lambda i: f"{i},{3 / i!r}\n".encode(), "l": lambda i: json.dumps({"step": i, "loss": 3 / i}).encode() + b"\n"}
        files = {name: open(self.journals / f"{name}.{ending}", "wb", buffering=0) for name, ending in (("c", "csv"), ("l", "jsonl"))}
        files["c"].write(b"step,loss\n")
        for file in files.values():
            self.addCleanup(file.close)
        self.follow()
        for last in (1, 2, 5, 6, 9):
            for name, file in files.items():
                first = {1: 1, 2: 2, 5: 3, 6: 6, 9: 7}[last]
                file.write(b"".join(writers[name](i) for i in range(first, last + 1)))
            expected = [(i, 3 / i) for i in range(1, last + 1)]
            self.until(lambda: self.rows() == {"c": expected, "l": expected})
        self.assertEqual(self.query("SELECT count(*) FROM superseded_steps"), [(0,)])

    def test_the_last_row_of_a_file_that_is_rotated_removed_or_written_again_is_kept(self):
        self.journals.mkdir()
        files = {}
        for end in ("renamed", "removed", "again"):
            files[end] = self.journals / f"{end}.csv"
            files[end].write_bytes(b"step,loss\n" + b"".join(b"%d,%d.5\n" % (i, i) for i in range(1, 6)))
        events = self.journals / "tb/events.out.tfevents.1.host"
        events.parent.mkdir()
        events.write_bytes(b"".join(event(i, "loss", float(i)) for i in range(1, 6)))
        held = [open(path, "ab", buffering=0) for path in (files["renamed"], files["removed"])]  # their writers live
        follower = self.follow()
        self.until(lambda: len(self.rows()) == 4 and all(len(rows) == 5 for rows in self.rows().values()))
        # What a follower has no time to see under the file's own name.
        follower.send_signal(signal.SIGSTOP)
        held[0].write(b"6,6.5\n7,7.5")  # the last line has no end
        held[1].write(b"6,6.5\n7,7.5\n")
        with open(events, "ab") as file:
            file.write(event(6, "loss", 6.0) + event(7, "loss", 7.0))
        files["renamed"].rename(self.journals / "renamed.csv.1")
        files["renamed"].write_bytes(b"step,loss\n1,9.5\n2,9.25\n")
        files["removed"].unlink()
        events.unlink()
        files["again"].write_bytes(b"step,loss\n1,8.5\n")
        for file in held:
            file.close()
        follower.send_signal(signal.SIGCONT)
        seven = [(i, i + 0.5) for i in range(1, 8)]
        self.until(lambda: [rows for name, rows in self.by_run() if name == "renamed"] == [seven, [(1, 9.5), (2, 9.25)]])
        self.until(lambda: [rows for name, rows in self.by_run() if name == "removed"] == [seven])
        self.until(lambda: [rows for name, rows in self.by_run() if name == "again"] == [seven[:5], [(1, 8.5)]])
        self.until(lambda: [rows for name, rows in self.by_run() if name == "tb"] == [[(i, float(i)) for i in range(1, 8)]])

    def by_run(self):
        found = {}
        for run, name, step, loss in self.query("SELECT run_id, name, step, loss FROM steps JOIN runs ON id = run_id ORDER BY run_id, step"):
            found.setdefault(run, (name, []))[1].append((step, loss))
        return list(found.values())

    def test_nothing_there(self):
        status, out, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("does not exist", err)
        self.journals.mkdir(exist_ok=True)
        (self.journals / "a.log").write_text("step 1 loss 2\n")
        status, out, err = self.place.run("follow", self.journals, "--once")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("found nothing to follow", err)
        self.assertIn("only if it is named itself", err)


if __name__ == "__main__":
    unittest.main()
