"""A training goes on while its database is locked, its disk is full or single calls fail, and no step is lost."""
import errno
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from faults import LONG, PATIENCE_S, SMALLEST, Lock, Place, Rules, memory_mb, say, steps_told

LOCKED_S = 60 if LONG else 6  # more than the five seconds that a SQLite program usually waits
FAILING_S = 60 if LONG else 2  # and until the terminal says so


class Errors(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def train(self, *options, steps=100000000):
        self.told = self.place.path / "stderr"
        with open(self.told, "w") as told:
            process = self.place.watched("train", *SMALLEST, "--steps", steps, "--name", "training", *options, stderr=told)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.place.wait_for_steps(200, process)
        return process

    def stop(self, process):
        """Ends the training as Ctrl-C does, and compares what it told with what is stored."""
        peak = memory_mb(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        error = self.told.read_text()
        status, done = steps_told(error)
        self.assertEqual((status, process.returncode), ("stopped", 130), error)
        run = self.place.json("runs")[0]
        self.assertEqual((run["status"], run["steps"], run["first_step"], run["last_step"]), ("stopped", done, 1, done),
                         error)
        self.assertTrue(self.place.json("doctor", "--database")["sound"])
        return done, peak, error

    def goes_on(self, process, seconds):
        """Waits, while nothing can be stored; the processor's time is the witness that the training goes on."""
        def cpu():
            return sum(map(int, pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        before = cpu()
        time.sleep(seconds)
        self.assertIsNone(process.poll(), "the training ended")
        used = (cpu() - before) / os.sysconf("SC_CLK_TCK")
        self.assertGreater(used, 0.1 * seconds, "the training waits")

    def wait_until_told(self):
        deadline = time.monotonic() + PATIENCE_S
        while "to be stored since" not in self.told.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)

    def assert_told(self, error, reason):
        """The terminal said how many steps wait, since when and why, and that they are stored again."""
        self.assertRegex(error, rf"stepladder: [\d,]+ steps? waits? .*since .*({reason})")
        self.assertIn("all steps are stored again", error)

    def test_a_lock(self):
        process = self.train()
        with Lock(self.place.database):
            self.goes_on(process, LOCKED_S)
            self.wait_until_told()
        after = self.place.stored()[0]
        self.place.wait_for_steps(after + 500, process)
        done, peak, error = self.stop(process)
        self.assert_told(error, "lock")
        say(f"lock of {LOCKED_S} s: {done} steps done, 0 lost, {peak} MB at most")

    def test_a_lock_until_after_the_end(self):
        """The training ends while the lock is held, so its last steps have nowhere to go but to wait."""
        process = self.train(steps=2000)
        with Lock(self.place.database):
            time.sleep(LOCKED_S + 1)
        process.communicate(timeout=PATIENCE_S)
        error = self.told.read_text()
        status, done = steps_told(error)
        run = self.place.json("runs")[0]
        self.assertEqual((status, done, run["status"], run["steps"]), ("finished", 2000, "finished", 2000), error)
        self.assertEqual(process.returncode, 0, error)

    def test_a_full_disk(self):
        process = self.train()
        self.place.rules.fail(Rules.OPEN | Rules.WRITE | Rules.RESIZE | Rules.NAME, errno.ENOSPC, only_growth=True, half=True)
        self.goes_on(process, FAILING_S)
        self.wait_until_told()
        failed = self.place.rules.injected
        self.place.rules.stop()
        self.assertGreater(failed, 0)
        self.place.wait_for_steps(self.place.stored()[0] + 500, process)
        done, peak, error = self.stop(process)
        self.assert_told(error, "full|space")
        say(f"full disk of {FAILING_S} s: {failed} calls failed, {done} steps done, 0 lost, {peak} MB at most")

    def test_a_disk_slower_than_the_next_event(self):
        """Each commit takes longer than the next second's measurements need to come, and yet the training ends."""
        process = self.place.watched("train", *SMALLEST, "--steps", 2000, "--save-every", 2000, sync_ms=1200)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        _, error = process.communicate(timeout=PATIENCE_S)
        run = self.place.json("show", self.place.json("runs")[0]["id"])
        self.assertEqual((process.returncode, run["status"], run["steps"]), (0, "finished", 2000), error)
        self.assertEqual(run["checkpoints"][-1]["step"], 2000)

    def test_every_call_fails(self):
        process = self.train()
        self.place.rules.fail(Rules.WRITE | Rules.SYNC | Rules.RESIZE, errno.EIO)
        self.goes_on(process, FAILING_S)
        self.wait_until_told()
        failed = self.place.rules.injected
        self.place.rules.stop()
        self.place.wait_for_steps(self.place.stored()[0] + 500, process)
        done, peak, error = self.stop(process)
        self.assert_told(error, "rror")
        say(f"EIO of {FAILING_S} s: {failed} calls failed, {done} steps done, 0 lost, {peak} MB at most")

    def test_single_errors(self):
        dice = random.Random(3)
        count = 200 if LONG else 12
        process = self.train("--save-every", 200, "--keep", 2)
        done_calls = []
        for _ in range(count):
            operations = dice.choice([Rules.WRITE, Rules.WRITE, Rules.SYNC, Rules.OPEN, Rules.NAME, Rules.RESIZE, Rules.READ,
                                      Rules.MAP])
            self.place.rules.fail(operations, dice.choice([errno.EIO, errno.ENOSPC]), nth=dice.randint(1, 20),
                                  half=dice.random() < 0.3)
            deadline = time.monotonic() + 1
            while self.place.rules.active and time.monotonic() < deadline:
                time.sleep(0.005)
            if not self.place.rules.active:
                done_calls.append(self.place.rules.last)
            time.sleep(dice.random() * 0.1)
            self.assertIsNone(process.poll(), f"the training ended after {done_calls[-1:]}")
        self.place.rules.stop()
        self.place.wait_for_steps(self.place.stored()[0] + 500, process)
        done, _, error = self.stop(process)
        say(f"single errors: {len(done_calls)} of {count} tries failed a call, {done} steps done, 0 lost")
        self.assertGreater(len(done_calls), count // 4)

    def test_an_error_anywhere(self):
        """From its start to its end: whatever the program says then is true."""
        dice = random.Random(4)
        ends = []
        for attempt in range(60 if LONG else 6):
            self.place.rules.fail(dice.choice([Rules.WRITE, Rules.SYNC, Rules.OPEN, Rules.NAME, 127]),
                                  dice.choice([errno.EIO, errno.ENOSPC]), nth=int(1.5 ** dice.uniform(0, 14)))
            process = self.place.watched("train", *SMALLEST, "--steps", 300, "--save-every", 100, "--name", f"try {attempt}")
            _, error = process.communicate(timeout=PATIENCE_S)
            self.place.rules.stop()
            status, done = steps_told(error)
            runs = {run["name"]: run for run in self.place.json("runs")}
            run = runs.get(f"try {attempt}")
            ends.append((process.returncode, self.place.rules.last))
            context = f"attempt {attempt}, exit {process.returncode}, after {self.place.rules.last}: {error}"
            if process.returncode == 0:
                self.assertEqual((status, done), ("finished", 300), context)
            if done:
                self.assertEqual((run["status"], run["steps"]), (status, done), context)
            if run and run["status"] == "finished":
                self.assertEqual(run["steps"], 300, context)
        say(f"an error anywhere: {len(ends)} trainings, {sum(code == 0 for code, _ in ends)} ended well, none lied")


def full_tmpfs():
    """Needs a private mount namespace, so it is a program of its own: ENOSPC by a real file system."""
    place = Place()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(place.project)], check=True)
    process = place.start("train", *SMALLEST, "--steps", 100000000, "--name", "training")
    try:
        place.wait_for_steps(200, process)
        filler = open(place.project / "filler", "wb", buffering=0)
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
        deadline = time.monotonic() + FAILING_S
        while time.monotonic() < deadline:
            time.sleep(0.1)
            try:
                filler.write(bytes(4096))
            except OSError:
                pass
        os.truncate(place.project / "filler", 0)
        place.wait_for_steps(place.stored()[0] + 500, process)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        status, done = steps_told(error)
        run = place.json("runs")[0]
        found = (run["status"], run["steps"], run["last_step"])
        assert (status, process.returncode) == ("stopped", 130) and found == ("stopped", done, done), (error, found)
        say(f"a full tmpfs for {FAILING_S} s: {done} steps done, 0 lost")
    finally:
        process.kill()
        process.communicate()
        subprocess.run(["umount", "-l", str(place.project)], check=False)
        place.close()


class Tmpfs(unittest.TestCase):
    def test_a_full_tmpfs(self):
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode != 0:
            self.skipTest("no right to mount a file system here")
        done = subprocess.run(["unshare", "-m", sys.executable, __file__, "tmpfs"], capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["tmpfs"]:
        full_tmpfs()
    else:
        unittest.main(verbosity=2)
