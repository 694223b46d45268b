"""kill -9 of watch's tracker, half the time while the database is locked: the program ends well, and after `watch --attach`
each of its steps is stored once."""
import random
import subprocess
import sys
import time
import unittest

from faults import LONG, Lock, Place, say

PROGRAMS = 16 if LONG else 3
STEPS = 3000
PRINTING = f"""
import pathlib, sys, time
for i in range(1, {STEPS} + 1):
    print(f"step {{i}} | loss {{5 - i / 1000:.4f}} | dt 9.0ms | tok/sec 40960", flush=True)
    time.sleep(0.001)
pathlib.Path(sys.argv[1]).write_text("well")
"""


class Tracker(unittest.TestCase):
    def setUp(self):
        self.dice = random.Random(7)
        self.kills = 0

    def start(self, place, *arguments):
        tracker = place.watched("watch", *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (tracker.kill(), tracker.communicate()))
        return tracker

    def kill(self, tracker):
        if tracker.poll() is None:
            tracker.kill()
            self.kills += 1
        tracker.communicate()

    def program(self, with_lock):
        place = Place()
        self.addCleanup(place.close)
        ended = place.path / "ended"
        tracker = self.start(place, "--name", "watched", "--", sys.executable, "-c", PRINTING, ended)
        place.wait_for_run()
        time.sleep(self.dice.uniform(0, 1.2))
        if with_lock:
            with Lock(place.database):
                time.sleep(self.dice.uniform(0, 1.5))
                self.kill(tracker)
                time.sleep(self.dice.uniform(0, 1))
        else:
            self.kill(tracker)
        if self.dice.random() < 0.5:
            second = self.start(place, "--attach", 1)
            time.sleep(self.dice.uniform(0.1, 1))
            self.kill(second)
        status, _, error = place.run("watch", "--attach", 1)
        # The tracker before may have recorded everything before it was killed.
        self.assertTrue(status == 0 or "no output that isn't recorded" in error, error)
        self.assertEqual(ended.read_text(), "well")
        run, = place.json("runs")
        self.assertEqual((run["status"], run["steps"], run["first_step"], run["last_step"]), ("finished", STEPS, 1, STEPS))
        self.assertEqual([row["step"] for row in place.json("show", 1, "--steps")["data"]], list(range(1, STEPS + 1)))
        self.assertTrue(place.json("doctor", "--database")["sound"])

    def test_kills(self):
        for number in range(PROGRAMS):
            self.program(with_lock=number % 2 == 1)
        say(f"the tracker of a watched program is killed: {PROGRAMS} programs, {self.kills} kills, "
            f"{PROGRAMS * STEPS} steps printed, 0 lost, none twice")


if __name__ == "__main__":
    unittest.main(verbosity=2)
