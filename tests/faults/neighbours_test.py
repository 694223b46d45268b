"""Other programs use the training's database meanwhile: a big import, the removal of a large run, and readers."""
import contextlib
import pathlib
import random
import signal
import sqlite3
import statistics
import tempfile
import time
import unittest

from faults import LONG, PATIENCE_S, SMALLEST, LockWatch, Place, say, steps_told

ROWS = 10_000_000 if LONG else 500_000
KILLS = 10 if LONG else 3


class Neighbours(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="stepladder-neighbours-")
        cls.addClassCleanup(folder.cleanup)
        cls.csv = pathlib.Path(folder.name) / "big.csv"
        with open(cls.csv, "w") as file:
            file.write("step,loss,dt_ms,tokens\n")
            file.writelines(f"{step},{3 + step % 7 / 10},{40 + step % 5},8192\n" for step in range(1, ROWS + 1))

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def beside_a_training(self, *command):
        process = self.place.start("train", *SMALLEST, "--steps", 100000000, "--name", "training")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.place.wait_for_steps(500, process)
        begun = time.time()
        with LockWatch(self.place.database) as lock:
            status, out, error = self.place.run(*command, timeout=PATIENCE_S)
        ended = time.time()
        self.assertEqual(status, 0, error)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        status, done = steps_told(error)
        self.assertEqual((status, process.returncode), ("stopped", 130), error)
        run = self.place.json("show", "training")
        self.assertEqual((run["status"], run["steps"], run["last_step"]), ("stopped", done, done))
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            steps = database.execute("select dt_ms, at from steps where run_id = ?", (run["id"],)).fetchall()
        beside = [dt for dt, at in steps if begun <= at <= ended]
        alone = [dt for dt, at in steps[100:] if not begun <= at <= ended]
        say(f"{command[0]} of {ROWS} steps in {ended - begun:.1f} s beside a training: {done} steps done, 0 lost; step time "
            f"{statistics.median(beside or [0]):.3f} ms, alone {statistics.median(alone):.3f} ms; the longest wait of a third "
            f"program for the write lock: {1000 * max(lock.waits):.0f} ms of {len(lock.waits)}")
        self.assertTrue(self.place.json("doctor", "--database")["sound"])
        # Others get the lock again and again meanwhile, however slow the machine is; a busy one may stall them once.
        self.assertLess(sorted(lock.waits)[-2], (ended - begun) / 4)

    def test_a_big_import(self):
        self.beside_a_training("import", self.csv)
        self.assertEqual(self.place.json("show", "big")["steps"], ROWS)

    def test_a_large_run_is_removed(self):
        status, _, error = self.place.run("import", self.csv, timeout=PATIENCE_S)
        self.assertEqual(status, 0, error)
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:  # as the desktop does
            database.execute("insert into curation (run_id, deleted_at) select id, unixepoch() from runs")
            database.commit()
        self.beside_a_training("bin", "--empty", "--yes")
        self.assertEqual([run["name"] for run in self.place.json("runs")], ["training"])

    def test_a_killed_import_leaves_nothing(self):
        """Of a file and of a folder, whose first file has been read when the second is under way."""
        folder = self.place.path / "folder"
        folder.mkdir()
        (folder / "a.csv").write_text("step,loss,dt_ms,tokens\n" + "".join(f"{i},3,40,8192\n" for i in range(1, 100)))
        (folder / "b.csv").symlink_to(self.csv)
        dice = random.Random(5)
        for kill in range(KILLS):
            process = self.place.start("import", (self.csv, folder)[kill % 2])
            deadline = time.monotonic() + PATIENCE_S
            while self.count("runs") == 0 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(dice.uniform(0, 0.5))
            self.assertEqual(self.place.json("runs"), [], "while it is read")
            self.assertIsNone(process.poll(), "it was killed before its end")
            process.kill()
            process.communicate()
            self.assertEqual(self.place.json("runs"), [])
            self.assertEqual([self.count(table) for table in ("runs", "ladders", "steps")], [0, 0, 0])
        self.assertTrue(self.place.json("doctor", "--database")["sound"])

    def count(self, table):
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True)) as database:
                return database.execute(f"select count(*) from {table}").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


if __name__ == "__main__":
    unittest.main(verbosity=2)
