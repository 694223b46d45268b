"""kill -9 while nothing can be stored: each step that the progress line had shown is there after the next start."""
import errno
import math
import os
import pty
import random
import re
import select
import signal
import time
import unittest

from faults import LONG, SMALLEST, Lock, Place, Rules, say

KILLS = 20 if LONG else 3


class Terminal:
    """The program's own terminal, on which it draws its progress."""

    def __init__(self, start):
        self.fd, theirs = pty.openpty()
        self.process = start(stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.step = 0
        self.tail = ""

    def read(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            try:
                self.tail = (self.tail + os.read(self.fd, 65536).decode(errors="replace"))[-4000:]
            except OSError:
                break
            for shown in re.findall(r"step ([\d,]+)/", self.tail):
                self.step = max(self.step, int(shown.replace(",", "")))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.read(0.2)
        os.close(self.fd)


class Kill(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)
        self.dice = random.Random(5)
        self.lost = self.steps = self.checked = 0

    def start(self):
        terminal = Terminal(lambda **streams: self.place.watched("train", *SMALLEST, "--steps", 10000000, "--name",
                                                                 f"killed {self.checked}", **streams))
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        before = 0
        while terminal.step < 100 and before < 100:
            terminal.read(0.1)
            before += 1
        self.assertGreaterEqual(terminal.step, 100, terminal.tail)
        return terminal

    def check(self, terminal, how, most=math.inf):
        run = self.place.json("runs")[-1]
        self.assertEqual(run["name"], f"killed {self.checked}")
        self.assertEqual(run["status"], "interrupted")
        self.assertEqual((run["steps"], run["first_step"]), (run["last_step"], 1), "no gap")
        self.assertGreaterEqual(run["last_step"], min(terminal.step, most), f"{how}: steps that the program had shown are lost")
        self.assertTrue(self.place.json("doctor", "--database")["sound"])
        again = self.place.json("runs")[-1]
        self.assertEqual((again["steps"], again["last_step"]), (run["steps"], run["last_step"]), "taken in once")
        self.steps += terminal.step
        self.checked += 1

    def kill_while(self, hinder, allow, how, longest, most=math.inf):
        for _ in range(KILLS):
            terminal = self.start()
            hinder()
            terminal.read(self.dice.uniform(0.2, longest))
            terminal.kill()
            allow()
            self.check(terminal, how, most)
        say(f"kill -9 {how}: {self.checked} kills, {self.steps} steps shown, 0 lost")

    def test_without_a_fault(self):
        self.kill_while(lambda: None, lambda: None, "at any moment", 3 if LONG else 2)

    def test_while_locked(self):
        locks = []
        self.kill_while(lambda: locks.append(Lock(self.place.database).__enter__()),
                        lambda: locks.pop().__exit__(), "while the database is locked", 12 if LONG else 3)

    def test_on_a_full_disk(self):
        # What no disk takes waits in shared memory, which has room for so many steps (event_ring.h).
        self.kill_while(lambda: self.place.rules.fail(Rules.OPEN | Rules.WRITE | Rules.RESIZE | Rules.NAME, errno.ENOSPC,
                                                      only_growth=True), self.place.rules.stop, "on a full disk",
                        12 if LONG else 3, most=16_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
