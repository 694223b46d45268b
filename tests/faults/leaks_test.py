"""Many runs in one process: its memory, its open files and its threads stay as they were after the first quarter."""
import os
import pathlib
import re
import sqlite3
import time
import unittest

from faults import LONG, SMALLEST, Place, say

RUNS = 160 if LONG else 80
# A run keeps its row and its recipe; a model that leaks is 140 kB a run.
MOST_MB = 3


class Leaks(unittest.TestCase):
    def test_many_runs(self):
        place = Place()
        self.addCleanup(place.close)
        process = place.start("ladder", "--stages", "baseline", "--repeats", RUNS, *SMALLEST, "--steps", 20,
                              "--save-every", 20)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        own = pathlib.Path(f"/proc/{process.pid}")
        seen = []  # (runs done, memory in kB, files, threads)
        while process.poll() is None:
            try:
                status = (own / "status").read_text()
                seen.append((self.done(place), int(re.search(r"VmRSS:\s+(\d+)", status)[1]), len(os.listdir(own / "fd")),
                             int(re.search(r"Threads:\s+(\d+)", status)[1])))
            except (OSError, TypeError, sqlite3.OperationalError):
                pass
            time.sleep(0.05)
        _, error = process.communicate()
        self.assertEqual(process.returncode, 0, error)
        early = [row for row in seen if RUNS // 4 <= row[0] < RUNS // 2]
        late = [row for row in seen if RUNS * 3 // 4 <= row[0] < RUNS]
        self.assertTrue(early and late, f"too quick to watch: {seen}")
        grown = [max(row[i] for row in late) - max(row[i] for row in early) for i in (1, 2, 3)]
        say(f"leaks: {RUNS} runs; from the second quarter to the last {grown[0]} kB, {grown[1]} open files and {grown[2]} threads more")
        self.assertLess(grown[0], 1024 * MOST_MB, seen)
        self.assertLess(grown[1], 8, seen)
        self.assertLess(grown[2], 4, seen)

    def done(self, place):
        database = sqlite3.connect(f"file:{place.database}?mode=ro", uri=True, timeout=1)
        try:
            return database.execute("select count(*) from runs where status = 'finished'").fetchone()[0]
        finally:
            database.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
