"""`stepladder record run`: two commands in turns, killed and taken up again."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest

from program import PATIENCE_S, Workplace

# Prints the log of a run whose clock shows what the command was told; waits until a file is there.
COMMAND = """
import os, pathlib, sys, time
step_ms, wait_for = float(sys.argv[1]), sys.argv[2]
run, side = int(os.environ["STEPLADDER_RUN"]), os.environ["STEPLADDER_SIDE"]
with open(sys.argv[3], "a") as calls:
    calls.write(f"{side} {run}\\n")
for step in range(101):
    clock = f"train_time:{step * (step_ms + 0.01 * run):.0f}ms step_avg:{step_ms:.2f}ms"
    if step % 25 == 0:
        loss = 3.277 + 0.0001 * run if step == 100 else 8 - step / 50 + run / 1000 + (side == "baseline") / 10
        print(f"step:{step}/100 val_loss:{loss:.4f} {clock}", flush=True)
    if step:
        print(f"step:{step}/100 train_loss:{9 - step / 20:.4f} {clock}", flush=True)
    if step == 50 and run == 2:
        while wait_for != "-" and not os.path.exists(wait_for):
            time.sleep(0.01)
"""


class RecordRun(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.folder = self.place.path / "experiment"
        self.calls = self.place.path / "calls"
        self.gate = self.place.path / "gate"
        (self.place.path / "train.py").write_text(COMMAND)

    def tearDown(self):
        self.place.close()

    def command(self, step_ms, gate="-"):
        return f"python3 {self.place.path}/train.py {step_ms} {gate} {self.calls}"

    def wait_until(self, holds, what):
        end = time.time() + PATIENCE_S
        while not holds():
            self.assertLess(time.time(), end, f"waited in vain: {what}")
            time.sleep(0.02)

    def holder(self):
        """The process that holds the folder's lock, or 0."""
        layout = "hhxxxxqqixxxx"  # struct flock of 64-bit Linux
        with open(self.folder / ".state" / "held", "r+") as file:
            lock = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(layout, fcntl.F_WRLCK, 0, 0, 0, 0))
        kind, _, _, _, pid = struct.unpack(layout, lock)
        return 0 if kind == fcntl.F_UNLCK else pid

    def read_calls(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_killed_half_way_it_goes_on(self):
        begin = ("record", "run", self.folder, "--runs", 3, "--baseline", self.command(103, self.gate), "--candidate",
                 self.command(100, self.gate))
        tracker = self.place.start(*begin)
        # Run 2 of a side waits in the middle; then the program is killed.
        self.wait_until(lambda: any(call.endswith(" 2") for call in self.read_calls()), "the second pair")
        second = next(call.split()[0] for call in self.read_calls() if call.endswith(" 2"))
        log = self.folder / second / "02.log"
        self.wait_until(lambda: "step:50/100 train" in log.read_text(), "half of a run")
        tracker.send_signal(signal.SIGKILL)
        tracker.communicate()
        plan = (self.folder / ".state" / "plan.json").read_text()

        # The next one waits for the run that is under way, and doesn't begin it once more.
        status, _, err = self.place.run("record", "run", self.folder, "--runs", 4)
        self.assertEqual(status, 2)
        self.assertIn("3 runs of each side, not 4", err)
        status, _, err = self.place.run("record", "run", self.folder, "--baseline", "true")
        self.assertEqual(status, 2, err)
        again = self.place.start("record", "run", self.folder, "--json")
        # A third one that came first would hold the folder, and wait for the gate.
        self.wait_until(lambda: self.holder() == again.pid, "the folder to be held")
        status, _, err = self.place.run("record", "run", self.folder, "--json")
        self.assertEqual(status, 2)
        self.assertIn("worked on by another", err)
        self.gate.touch()
        out, err = again.communicate(timeout=PATIENCE_S)
        self.assertEqual(again.returncode, 0, err)  # by the logs' clock; the wall clock holds the wait, too
        report = json.loads(out)

        calls = self.read_calls()
        self.assertEqual(sorted(calls), sorted(f"{side} {i}" for side in ("baseline", "candidate") for i in (1, 2, 3)))
        self.assertEqual({side for side, _ in map(str.split, calls[:2])}, {"baseline", "candidate"}, "in pairs")
        self.assertEqual((self.folder / ".state" / "plan.json").read_text(), plan)
        self.assertEqual(sorted(it.name for it in (self.folder / second).iterdir()), ["01.log", "02.log", "03.log"])
        claim = report["claim"]
        self.assertEqual((report["done"], claim["n"], claim["baseline_n"]), (6, 3, 3))
        self.assertAlmostEqual(claim["speedup"], 103.02 / 100.02, places=4)
        self.assertNotIn("plan-not-kept", [flag["id"] for flag in claim["flags"]])
        self.assertEqual(len(report["imported"]), 6)
        runs = self.place.json("runs")
        self.assertEqual(sorted(run["steps"] for run in runs), [101] * 6)  # with step 0

        # Finished: it reports again, runs nothing and imports nothing.
        status, out, _ = self.place.run("record", "run", self.folder, "--json", "--rule", "modded-nanogpt-1")
        self.assertEqual((json.loads(out)["imported"], self.read_calls()), ([], calls))
        claim = json.loads(out)["claim"]
        self.assertEqual((status, claim["verdict"]), (0, "record"), claim)
        self.assertEqual(len(self.place.json("runs")), 6)

    def test_known_sleep(self):
        status, out, err = self.place.run("record", "run", self.folder, "--runs", 4, "--baseline", "sleep 0.6",
                                          "--candidate", "sleep 0.3", "--json", "--no-import")
        self.assertEqual(status, 0, err)
        wall = json.loads(out)["wall"]
        self.assertEqual((wall["verdict"], wall["baseline_s"]["n"]), ("faster", 4))
        self.assertGreaterEqual(wall["baseline_s"]["mean"], 0.6)
        low, high = wall["ci95"]
        self.assertTrue(low <= wall["speedup"] <= high)
        self.assertGreater(wall["speedup"], 1)
        self.assertFalse(self.place.database.exists())

    def test_failures_and_bad_input(self):
        here = self.place.path
        for arguments, said in (((self.folder,), "needs --repeats"),
                                ((self.folder, "--runs", 2, "--baseline", "true"), "needs --repeats and both"),
                                ((self.folder, "--runs", 2, "--", "true"), "the same command"),
                                ((self.folder, "--runs", 0), "--runs"),
                                ((self.folder, "--runs", 2, "--plan", 3, "--", "true"), "'--plan' is not an option"),
                                ((here, "--runs", 2, "--baseline", "a", "--candidate", "b"), "isn't empty"),
                                ((self.folder, "--runs", 2, "--baseline-in", here / "none", "--", "true"), "none")):
            status, _, err = self.place.run("record", "run", *arguments)
            self.assertEqual(status, 2, (arguments, err))
            self.assertIn(said, err)
        one, two = here / "one", here / "two"
        one.mkdir(), two.mkdir()
        (two / "ok").touch()
        side_by_side = ("record", "run", self.folder, "--runs", 1, "--baseline-in", one, "--candidate-in", two,
                        "--no-import", "--", "cat", "ok")
        status, _, err = self.place.run(*side_by_side)
        self.assertEqual(status, 1)
        self.assertIn("baseline failed with exit status 1", err)
        self.assertEqual([it.name for it in (self.folder / "baseline").iterdir()], ["01.failed-1.log"])
        self.assertIn("ok", (self.folder / "baseline" / "01.failed-1.log").read_text())
        (one / "ok").touch()
        status, out, err = self.place.run(*side_by_side)
        self.assertEqual(status, 11, err)  # one run of each has no interval

        # Interrupted: the command is ended, and its log is kept under another name.
        folder = here / "stopped"
        process = self.place.start("record", "run", folder, "--runs", 1, "--baseline", "echo a; sleep 1000",
                                   "--candidate", "echo b; sleep 1000")
        logs = lambda: [it for it in folder.rglob("*.log") if it.read_text()]
        self.wait_until(logs, "the first run")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)
        self.assertIn("0 of 2 runs", err)
        self.assertEqual([it.name for it in folder.rglob("*.log")], ["01.interrupted-1.log"])

    def begun_by_somebody_else(self):
        """A folder as it is mailed: finished runs of each side, some left, made under another user's order book."""
        begin = ("record", "run", self.folder, "--runs", 2, "--baseline", self.command(103, self.gate), "--candidate",
                 self.command(100, self.gate))
        tracker = self.place.start(*begin)
        self.wait_until(lambda: any(call.endswith(" 2") for call in self.read_calls()), "the second pair")
        tracker.send_signal(signal.SIGINT)
        tracker.communicate(timeout=PATIENCE_S)
        self.gate.touch()
        return begin

    def test_a_folder_from_elsewhere_orders_nothing(self):
        begin = self.begun_by_somebody_else()
        calls = self.read_calls()
        copy = self.place.path / "copy"
        shutil.copytree(self.folder, copy, symlinks=True)
        for folder, state in ((copy, "state"), (self.folder, "another-user")):
            self.place.environment["XDG_STATE_HOME"] = str(self.place.path / state)
            for more in ((), ("--runs", 2), ("--rule", "modded-nanogpt-1"), ("--baseline", begin[6])):
                status, out, err = self.place.run("record", "run", folder, *more)
                self.assertEqual((status, out), (2, ""), err)
                self.assertIn("begun elsewhere", err)
                for words in (begin[6], begin[8], "2 times each", "once more"):
                    self.assertIn(words, err)
            self.assertEqual(self.read_calls(), calls)
            status, _, err = self.place.run("record", "run", folder, "--baseline", begin[6], "--candidate", "true")
            self.assertEqual(status, 2)
            self.assertIn("another command or folder of the candidate", err)
        # The commands, given here, are this user's own order; then the folder alone is enough.
        for side in ("baseline", "candidate"):  # results that nobody measured here
            for number in ("01", "02"):
                (copy / ".state" / f"{side}-{number}.json").write_text('{"exit_status": 0, "started_at": 1.0, "wall_s": 1.0}')
        status, _, err = self.place.run("record", "run", copy, "--no-import", *begin[5:])
        self.assertEqual(status, 0, err)
        self.assertEqual(len(self.read_calls()), len(calls) + 4, "all runs of both sides were made here")
        self.assertEqual(len(list((copy / ".state").glob("*.elsewhere"))), 4)
        status, _, err = self.place.run("record", "run", copy, "--no-import")
        self.assertEqual(status, 0, err)

    def test_a_changed_plan_orders_nothing(self):
        begin = self.begun_by_somebody_else()
        file = self.folder / ".state" / "plan.json"
        plan = json.loads(file.read_text())
        mark = self.place.path / "MARK"
        for side in ("baseline", "candidate"):
            plan[side]["command"] = ["touch", str(mark)]
        file.write_text(json.dumps(plan))
        status, _, err = self.place.run("record", "run", self.folder, "--no-import")  # what was ordered goes on
        self.assertEqual(status, 0, err)
        plan["id"] = "0" * 32
        for text in (json.dumps(plan), "{}", "[1]", "x", json.dumps({"version": 1, "id": 7}), json.dumps(plan | {"order": 1}),
                     json.dumps(plan | {"version": "1"}), "[" * 10**6,
                     json.dumps(plan).replace('"machine": {', '"machine": {"x": ' + "[" * 10**5 + "]" * 10**5 + ", "), json.dumps(plan | {"baseline": {"command": [1], "folder": 2}})):
            file.write_text(text)
            status, _, err = self.place.run("record", "run", self.folder)
            self.assertIn(status, (1, 2), err)
            self.assertIn(str(self.folder), err)
        file.unlink()
        os.mkfifo(file)
        status, _, err = self.place.run("record", "run", self.folder)
        self.assertEqual(status, 1)
        self.assertIn("not a regular file", err)
        self.assertFalse(mark.exists())

    def test_secrets_and_modes(self):
        command = f"{self.command(100)} --api-key=hunter2 WANDB_API_KEY=hunter2"
        asked = ("record", "run", self.folder, "--runs", 1, "--baseline", command, "--candidate", self.command(103), "--no-import")
        status, _, err = self.place.run(*asked)
        self.assertEqual(status, 11, err)
        self.assertEqual(self.place.run("record", "run", self.folder, "--no-import")[0], 11)
        self.assertEqual(self.place.run(*asked)[0], 11)
        for path in [self.folder, *self.folder.rglob("*")]:
            self.assertEqual(path.stat().st_mode & 0o777, 0o700 if path.is_dir() else 0o600, path)
            if path.is_file():
                self.assertNotIn("hunter2", path.read_text(), path)
        self.assertIn("--api-key=***", (self.folder / ".state" / "plan.json").read_text())

    def test_links_in_the_folder(self):
        begin = self.begun_by_somebody_else()
        state = self.folder / ".state"
        for name in ("held", "baseline-01.json.lock", "candidate-02.json.lock", "baseline-02.json.lock"):
            victim = self.place.path / f"victim-{name}"
            victim.write_text("mine")
            for put in (lambda path: path.symlink_to(victim), lambda path: os.link(victim, path)):
                (state / name).unlink(missing_ok=True)
                put(state / name)
                for end in state.glob("*-0[12].json"):
                    end.unlink()
                status, _, err = self.place.run("record", "run", self.folder, "--no-import")
                self.assertEqual(status, 1, (name, err))
                self.assertIn(name, err)
                self.assertEqual(victim.read_text(), "mine")
            (state / name).unlink()
        elsewhere = self.place.path / "elsewhere"
        for name in ("baseline", "candidate", ".state"):
            elsewhere.mkdir(exist_ok=True)
            os.rename(self.folder / name, self.place.path / "aside")
            (self.folder / name).symlink_to(elsewhere)
            status, _, err = self.place.run("record", "run", self.folder, "--no-import", *begin[3:])
            self.assertNotEqual(status, 0, name)
            self.assertEqual(list(elsewhere.iterdir()), [], name)
            (self.folder / name).unlink()
            os.rename(self.place.path / "aside", self.folder / name)

    def test_a_process_that_a_file_names_gets_no_signal(self):
        self.begun_by_somebody_else()
        other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        for name in ("baseline", "candidate"):
            (self.folder / ".state" / f"{name}-02.json").unlink(missing_ok=True)
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        for text in (f"{other.pid}", f"{other.pid} 0 {boot}", f"{other.pid} 77 {boot}", f"{other.pid} 77", "-1 7 x", "1 1 1",
                     f"{2**32 + other.pid} 1 {boot}"):
            locks = []
            for name in ("baseline-01", "candidate-01", "baseline-02", "candidate-02"):
                lock = open(self.folder / ".state" / f"{name}.json.lock", "w")
                lock.write(text)
                lock.flush()
                fcntl.flock(lock, fcntl.LOCK_EX)
                locks.append(lock)
            process = self.place.start("record", "run", self.folder, "--no-import")
            self.wait_until(lambda: "run " in process.stderr.readline(), "the run that seems to be under way")
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            for lock in locks:
                lock.close()
            process.communicate(timeout=PATIENCE_S)
            self.assertIsNone(other.poll(), text)


if __name__ == "__main__":
    unittest.main()
