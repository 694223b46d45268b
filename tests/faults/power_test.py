"""A training under a model of power failures (power.py): after each, the file is sound and misses 2 s at most, and every
checkpoint that has its name is whole and not ahead of the steps."""
import contextlib
import json
import pathlib
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from faults import LONG, PATIENCE_S, PROGRAM, SMALLEST, Place, say, steps_told
from power import Log, chances

MOST_LOST_S = 2.0
# The model's fsync takes no time and its run may share its cores with other tests; a commit waits for the processor then.
ALLOWED_S = MOST_LOST_S + 0.5


class Power(unittest.TestCase):
    def record(self, *options, seconds):
        """Trains for some seconds and at least until a third checkpoint; returns the log and each step's time."""
        self.place = Place()
        self.addCleanup(self.place.close)
        process = self.place.watched("train", *options, "--steps", 10000000, "--name", "powered", log=True, skip_sync=True)
        until, at_least = time.monotonic() + seconds, 3 * options[options.index("--save-every") + 1]
        while time.monotonic() < until or (self.newest_checkpoint() < at_least and time.monotonic() < until + 60):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        status, done = steps_told(error)
        self.assertEqual(status, "stopped", error)
        log = Log(self.place.log)
        self.check_log(log)
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            at = dict(database.execute("select step, at from steps"))
        self.assertEqual(sorted(at), list(range(1, done + 1)))
        return log, at

    def newest_checkpoint(self):
        return max((int(path.name[5:]) for path in self.place.project.glob("*.checkpoints/*/step-????????")), default=0)

    def check_log(self, log):
        """The whole log gives exactly the folder as it is: the shim missed nothing."""
        with tempfile.TemporaryDirectory() as folder:
            log.write_to(folder, len(log.entries))
            there = {str(p.relative_to(self.place.project)): p.read_bytes()
                     for p in self.place.project.rglob("*") if p.is_file() and not p.name.endswith("-shm")}
            replayed = {str(p.relative_to(folder)): p.read_bytes()
                        for p in pathlib.Path(folder).rglob("*") if p.is_file() and not p.name.endswith("-shm")}
            self.assertEqual(sorted(there), sorted(replayed))
            for name, data in there.items():
                self.assertEqual(len(data), len(replayed[name]), name)
                self.assertTrue(data == replayed[name], f"{name} was changed past the shim")

    def moments(self, log, dice, count):
        """Half of the failures at any entry, half within a few entries of a change of names, and one at the end."""
        near = [c.index for c in log.changes if c.index > 20]
        last = len(log.entries)
        return [min(last, max(1, dice.choice(near) + dice.randint(-3, 12))) if dice.random() < 0.5 else dice.randint(1, last)
                for _ in range(count - 1)] + [last]

    def program(self, *arguments):
        environment = dict(self.place.environment, XDG_CACHE_HOME=str(self.state / "cache"),
                           STEPLADDER_DB=str(self.state / "runs.db"))
        done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        return done.returncode, done.stdout, done.stderr

    def look(self, log, at, index, named):
        """What is wrong with one state, as sentences; and how many seconds of steps are missing."""
        wrong = []
        failed_at = log.entries[index].at if index < len(log.entries) else log.entries[-1].at
        for path, folder in named.items():
            if (damage := log.damage_of(path, folder)):
                wrong.append("half a checkpoint: " + damage)
        exit_status, out, error = self.program("runs", "--json")
        if exit_status != 0:
            return [*wrong, f"runs: exit {exit_status}: {error.strip()}"], 0.0
        runs = json.loads(out)
        exit_status, out, error = self.program("doctor", "--database", "--json")
        if exit_status != 0 or not json.loads(out)["sound"]:
            wrong.append(f"doctor: exit {exit_status}: {out} {error}")
        kept = 0
        if runs:
            kept = runs[0]["last_step"] or 0
            exit_status, out, error = self.program("show", runs[0]["id"], "--json")
            if exit_status != 0:
                wrong.append(f"show: exit {exit_status}: {error}")
            if (runs[0]["steps"] or 0) != kept:
                wrong.append(f"a gap: {runs[0]['steps']} steps, the last is {kept}")
            if kept and runs[0]["status"] in ("finished", "running", "queued"):
                if max(at) != kept:
                    wrong.append(f"the run is {runs[0]['status']} at step {kept}")
        for path in named:
            if path.exists() and int(path.name[5:]) > kept:
                wrong.append(f"{path.name} is ahead of step {kept}")
        expected = [step for step, moment in at.items() if moment <= failed_at]
        lost = failed_at - at[kept + 1] if kept + 1 in at and expected and at[kept + 1] <= failed_at else 0.0
        if lost > ALLOWED_S:
            wrong.append(f"{lost:.1f} s of steps are missing: {kept} of {max(expected)}")
        return wrong, lost

    def crash(self, *options, seconds, states, seed):
        log, at = self.record(*options, seconds=seconds)
        dice = random.Random(seed)
        failures, worst, checkpoints = [], 0.0, 0
        for number, index in enumerate(self.moments(log, dice, states)):
            with tempfile.TemporaryDirectory(prefix="stepladder-power-") as folder:
                self.state = pathlib.Path(folder)
                named = log.write_to(self.state, index, log.durable_at(index), chances(dice))
                checkpoints += len(named)
                wrong, lost = self.look(log, at, index, named)
                worst = max(worst, lost)
                failures += [f"state {number} (entry {index} of {len(log.entries)}): {text}" for text in wrong]
        say(f"power: {states} states of {len(at)} steps in {seconds} s ({len(log.entries)} changes, {len(log.syncs)} syncs), "
            f"{checkpoints} checkpoints seen; at most {worst:.2f} s lost; {len(failures)} wrong")
        if failures:
            self.fail("\n".join(failures[:40]))
        self.assertGreater(checkpoints, 0)

    def test_a_fast_training(self):
        self.crash(*SMALLEST, "--save-every", 500, "--keep", 2, seconds=20 if LONG else 4, states=150 if LONG else 8, seed=1)

    def test_a_training_at_a_real_rate(self):
        # About 30 ms a step on one slow core.
        self.crash("--model", "nano", "--layers", 2, "--d-model", 64, "--heads", 2, "--batch", 16, "--seq", 64,
                   "--threads", 1, "--save-every", 10, "--keep", 2, seconds=60 if LONG else 5, states=150 if LONG else 4,
                   seed=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
