"""kill -9 during a run, ten times: the file is intact, has every step older than 0.2 s, and the run is interrupted."""
import os
import signal
import sqlite3
import time
import unittest

from program import TINY, Workplace


class Kill(unittest.TestCase):
    def test_ten_times(self):
        place = Workplace()
        self.addCleanup(place.close)
        for attempt in range(10):
            process = place.start("train", *TINY, "--steps", 10000000, "--name", f"killed {attempt}")
            started = time.time()
            while time.time() - started < 60 and self.newest(place, attempt) < 10 + attempt:
                time.sleep(0.02)
            time.sleep(0.13 * attempt % 0.4)
            # Seen from outside: the steps written just before the end, and the time of the end.
            killed_at = time.time()
            process.send_signal(signal.SIGKILL)
            process.communicate()

            with sqlite3.connect(place.database) as database:
                self.assertEqual(database.execute("pragma integrity_check").fetchone()[0], "ok")
                count, last, at = database.execute(
                    "select count(*), max(step), max(at) from steps where run_id = (select max(id) from runs)").fetchone()
                dt = database.execute(
                    "select avg(dt_ms) from steps where run_id = (select max(id) from runs)").fetchone()[0]
            self.assertEqual(count, last, "no step between is missing")
            # Steps follow each other without a pause, so the newest one kept is at most 0.2 s plus a step old.
            self.assertLess(killed_at - at, 0.2 + 3 * dt / 1000 + 0.05)
            run = place.json("runs", "--filter", "killed")[attempt]
            self.assertEqual((run["status"], run["steps"], run["last_step"]), ("interrupted", count, last))
        self.assertEqual(len(place.json("runs")), 10)

    def newest(self, place, attempt):
        try:
            with sqlite3.connect(f"file:{place.database}?mode=ro", uri=True) as database:
                return database.execute("select count(*) from steps join runs on runs.id = run_id where name = ?",
                                        (f"killed {attempt}",)).fetchone()[0]
        except sqlite3.OperationalError:
            return 0


if __name__ == "__main__":
    unittest.main(verbosity=2)
