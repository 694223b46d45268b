"""`watch`: the program runs undisturbed and outlives its tracker, and every step that it prints is kept in little memory."""
import contextlib
import json
import os
import pathlib
import pty
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

from program import PATIENCE_S, PROGRAM, Workplace, read_terminal

STEPS = "".join(f"step {i} loss {4 - i / 10:.4f} dt 12.5ms\n" for i in range(10))
LONG = os.environ.get("STEPLADDER_LONG") == "1"
MEMORY = 256 << 20


class Case(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def watch(self, script, *options):
        return self.place.run("watch", *options, "--", sys.executable, "-c", script)

    def start(self, script, *options, **more):
        process = self.place.start("watch", *options, "--", sys.executable, "-c", script, **more)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        (self.place.path / "stop").touch()  # an endless program holds the pipes
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def until(self, holds, what, seconds=PATIENCE_S):
        deadline = time.time() + seconds
        while not holds():
            self.assertLess(time.time(), deadline, what)
            time.sleep(0.05)

    def steps(self, run=1):
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True)) as database:
                return database.execute("select step, loss, dt_ms from latest_steps where run_id = ? order by step",
                                        (run,)).fetchall()
        except sqlite3.OperationalError:
            return []

    def records(self, run=1):
        """All records of steps, those that a newer one has replaced included."""
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            tables = [name for name, in database.execute("select name from sqlite_master where type = 'table' and "
                                                         "name in ('steps', 'superseded_steps')")]
            return sum(database.execute(f"select count(*) from {table} where run_id = ?", (run,)).fetchone()[0]
                       for table in tables)

    def run_of(self, run=1):
        return next(row for row in self.place.json("runs") if row["id"] == run)

    def reason(self, run=1):
        return self.place.json("show", run)["reason"]

    @property
    def spools(self):
        folder = pathlib.Path(f"{self.place.database}.watch")
        return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


class Watch(Case):
    def test_output_is_untouched_and_steps_are_kept(self):
        script = f"import sys; sys.stdout.write({STEPS!r}); sys.stderr.write('to stderr\\n'); sys.exit(0)"
        code, out, err = self.watch(script, "--name", "mine")
        self.assertEqual((code, out, err), (0, STEPS, "to stderr\n"))
        run, = self.place.json("runs")
        self.assertEqual((run["name"], run["status"], run["steps"], run["source"]), ("mine", "finished", 10, "import"))
        with sqlite3.connect(self.place.database) as database:
            printed = b"".join(text.encode() if isinstance(text, str) else text for text, in
                               database.execute("select text from console order by part"))
        self.assertEqual(sorted(printed.decode().splitlines()), sorted((STEPS + "to stderr").splitlines()), "what was printed is kept")
        code, printed, err = self.place.run("show", run["id"], "--console")
        self.assertEqual((code, sorted(printed.splitlines()), err), (0, sorted((STEPS + "to stderr").splitlines()), ""))
        self.assertEqual(self.place.json("show", run["id"])["console"], printed)

    def test_a_run_is_called_as_its_script(self):
        script = self.place.path / "tr.py"
        script.write_text(f"print({STEPS!r})")
        for command in ([sys.executable, script], [sys.executable, "-u", script, "--lr", "1"], ["sh", "-c", f"{sys.executable} {script} --lr 1"]):
            self.place.run("watch", "--", *command)
        self.assertEqual([run["name"] for run in self.place.json("runs")], ["tr", "tr", "sh"])

    def test_the_exit_status_is_the_programs(self):
        self.assertEqual(self.watch(f"print({STEPS!r}); raise SystemExit(7)")[0], 7)
        self.assertEqual(self.watch(f"print({STEPS!r}, flush=True); import os; os.kill(os.getpid(), 9)")[0], 128 + 9)
        failed, killed = self.place.json("runs")
        self.assertEqual((failed["status"], failed["reason"]), ("failed", "exit status 7"))
        self.assertEqual((killed["status"], killed["reason"]), ("failed", "killed by signal 9"))
        self.assertEqual(self.place.run("watch", "--", "no-such-program")[0], 1)

    def test_steps_come_live_and_signals_are_passed_on(self):
        script = ("import signal, sys, time\n"
                  "signal.signal(signal.SIGINT, lambda *_: sys.exit(3))\n"
                  "for i in range(100000): print(f'step {i} loss 2.0', flush=True); time.sleep(0.02)\n")
        process = self.place.start("watch", "--", sys.executable, "-c", script)
        deadline = time.time() + PATIENCE_S
        steps = 0
        while time.time() < deadline and steps < 10:
            time.sleep(0.1)
            if self.place.database.exists():
                runs = self.place.json("runs")
                steps = runs[0]["steps"] if runs else 0
        self.assertGreaterEqual(steps, 10)
        self.assertEqual(runs[0]["status"], "running")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 3)
        self.assertEqual(self.place.json("runs")[0]["reason"], "exit status 3")

    def test_on_a_terminal_the_program_has_one_too(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, "watch", "--", sys.executable, "-c",
                                    "import sys; print('tty', sys.stdout.isatty()); print('step 1 loss 2.0')"],
                                   stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=self.place.environment)
        os.close(theirs)
        shown = read_terminal(ours)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        self.assertEqual(shown, b"tty True\r\nstep 1 loss 2.0\r\n")

    def test_a_signal_of_the_terminal_arrives_once(self):
        script = ("import signal, sys, time\n"
                  "count = 0\n"
                  "def note(*_): global count; count += 1\n"
                  "signal.signal(signal.SIGINT, note)\n"
                  "print('step 1 loss 2.0', flush=True)\n"
                  "end = time.time() + 20\n"
                  "while not count and time.time() < end: time.sleep(0.05)\n"
                  "time.sleep(0.5); sys.exit(count)\n")
        pid, terminal = pty.fork()  # with a controlling terminal
        if pid == 0:
            os.execve(PROGRAM, [str(PROGRAM), "watch", "--", sys.executable, "-c", script], self.place.environment)
        shown = b""
        while b"step 1" not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)
        os.close(terminal)

    def test_standard_input_and_a_growing_file(self):
        process = self.place.start("watch", "--name", "piped", stdin=subprocess.PIPE)
        self.assertEqual(process.communicate(STEPS)[0], STEPS)
        log = self.place.path / "grows.log"
        log.write_text("step 1 loss 2.0\n")
        process = self.place.start("watch", "--follow", log)
        of_log = lambda: [r["steps"] for r in self.place.json("runs") if r["name"] == "grows"]  # noqa: E731
        self.until(of_log, "the run")
        with log.open("a") as file:
            file.write("step 2 loss 1.5\nstep 3 loss 1.4\n")
        self.until(lambda: of_log()[0] >= 2, "all but the newest line, below which more may be told of its step")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0)
        runs = {r["name"]: r for r in self.place.json("runs")}
        self.assertEqual((runs["piped"]["steps"], runs["grows"]["steps"]), (10, 3))


# Prints steps until a file appears, and writes that it has reached its end.
ENDLESS = """
import pathlib, signal, sys, time
here = pathlib.Path({folder!r})
signal.signal(signal.SIGINT, lambda *_: sys.exit(3))
step = 0
while not (here / 'stop').exists():
    print(f'step {{step}} loss {{4 - step / 1000:.4f}} dt {{10 + step % 3}}.5ms', flush=True)
    step += 1
    time.sleep(0.01)
(here / 'end').write_text(str(step))
sys.exit({status})
"""


class Survival(Case):
    """The tracker is killed; the program isn't disturbed, and another tracker goes on."""

    def endless(self, status=0):
        return ENDLESS.format(folder=str(self.place.path), status=status)

    def stop(self):
        (self.place.path / "stop").touch()
        self.until((self.place.path / "end").exists, "the program was disturbed")
        return int((self.place.path / "end").read_text())

    def killed_after(self, count, script, run=1, **more):
        """A tracker that was killed when it had stored so many steps of this run."""
        tracker = self.start(script, **more)
        self.until(lambda: len(self.steps(run)) >= count, "no steps")
        tracker.kill()
        tracker.wait()
        return tracker

    def test_the_program_goes_on_and_another_tracker_records_the_rest(self):
        tracker = self.killed_after(20, self.endless(status=7), stdin=subprocess.DEVNULL)
        self.assertEqual(self.run_of()["status"], "running", "its program lives")
        status, out, err = self.place.run("runs")
        self.assertIn("run 1 is still running, but its output isn't being recorded; `stepladder watch --attach 1` records the rest", err)
        taken_in = len(self.steps())
        first = self.place.start("watch", "--attach", 1)
        self.addCleanup(self.end, first)
        self.until(lambda: len(self.steps()) > taken_in, "the second tracker records nothing")
        status, _, err = self.place.run("watch", "--attach", 1)
        self.assertEqual((status, "being recorded by another process" in err), (2, True), err)
        self.assertNotIn("attach", self.place.run("runs")[2], "somebody records it")
        first.kill()
        first.communicate()
        second = self.place.start("watch", "--attach", 1)
        self.addCleanup(self.end, second)
        time.sleep(0.3)
        count = self.stop()
        shown, _ = second.communicate(timeout=PATIENCE_S)
        self.assertEqual(second.returncode, 7, "the program's own exit status")
        run = self.run_of()
        self.assertEqual((run["status"], self.reason()), ("failed", "exit status 7"))
        self.assertEqual([step for step, _, _ in self.steps()], list(range(count)))
        self.assertEqual(self.records(), count, "no step twice")
        self.assertEqual(self.spools, [])
        printed = tracker.stdout.read()
        self.assertEqual(printed.splitlines()[-1].split()[:2], ["step", str(count - 1)], "the output goes on too")
        self.assertIn(shown.splitlines()[-1], printed)
        # The same as an import of what was printed.
        log = self.place.path / "printed.log"
        log.write_text(printed)
        self.assertEqual(self.place.run("import", log)[0], 0)
        self.assertEqual(self.steps(2), self.steps(1))

    def test_an_end_that_nobody_saw_is_told_truthfully(self):
        for status, expected in ((0, ("finished", None)), (3, ("failed", "exit status 3"))):
            with self.subTest(status=status):
                place, self.place = self.place, Workplace()
                self.addCleanup(place.close)
                self.killed_after(5, self.endless(status))
                count = self.stop()
                self.until(lambda: self.run_of()["status"] == "interrupted", "the keeper doesn't end")
                err = self.place.run("watch", "--", sys.executable, "-c", f"print({STEPS!r})")[2]
                self.assertIn("run 1 has ended, but the end of its output isn't recorded", err)
                code, _, err = self.place.run("watch", "--attach", 1)
                self.assertEqual((code, err), (status, ""))
                self.assertEqual((self.run_of()["status"], self.reason()), expected)
                self.assertEqual(len(self.steps()), count)
                code, _, err = self.place.run("watch", "--attach", 1)
                self.assertEqual((code, "has no output that isn't recorded" in err), (2, True))

    def test_signals_reach_the_program_through_a_second_tracker(self):
        self.killed_after(5, self.endless())
        count = len(self.steps())
        second = self.place.start("watch", "--attach", 1)
        self.addCleanup(self.end, second)
        # Steps alone say nothing: those of the killed tracker are stored before the program is found again.
        self.assertTrue(second.stdout.readline(), "no output goes on")
        self.until(lambda: len(self.steps()) > count, "no more steps")
        second.send_signal(signal.SIGINT)
        second.communicate(timeout=PATIENCE_S)
        self.assertEqual(second.returncode, 3)
        self.assertEqual(self.reason(), "exit status 3")

    def test_a_killed_keeper_is_no_end_that_somebody_saw(self):
        tracker = self.start(self.endless())
        self.until(lambda: len(self.steps()) >= 5, "no steps")
        keeper, = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == tracker.pid]
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(tracker.wait(PATIENCE_S), 1)
        self.assertEqual(self.run_of()["status"], "interrupted")
        self.assertIn("nobody knows how the program ended", self.reason())
        (self.place.path / "stop").touch()

    def test_several_runs_of_one_program(self):
        blocks = "".join(f"## part {block}\n\n" + STEPS for block in range(3))
        script = f"import time, pathlib\nprint({blocks!r}, flush=True)\n" + self.endless()
        self.killed_after(1, script, run=3)
        count = self.stop()
        self.assertEqual(self.place.run("watch", "--attach", 1)[0], 0)
        runs = self.place.json("runs")
        self.assertEqual([run["status"] for run in runs], ["finished"] * 3)
        self.assertEqual([self.records(run["id"]) for run in runs[:2]], [10, 10])
        self.assertGreaterEqual(runs[2]["steps"], count)

    def test_the_files_are_the_owners_alone(self):
        self.killed_after(5, self.endless())
        folder = pathlib.Path(f"{self.place.database}.watch")
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual({file.stat().st_mode & 0o777 for file in folder.iterdir()}, {0o600})
        self.assertEqual(self.spools, ["run-1.out", "run-1.state"])
        self.stop()

    def test_on_a_terminal(self):
        ours, theirs = pty.openpty()
        script = "import sys; print('tty', sys.stdout.isatty(), flush=True)\n" + self.endless()
        tracker = subprocess.Popen([PROGRAM, "watch", "--", sys.executable, "-c", script], stdout=theirs, stderr=theirs,
                                   stdin=subprocess.DEVNULL, env=self.place.environment)
        os.close(theirs)
        shown = b""
        while b"step 20 " not in shown:
            shown += os.read(ours, 4096)
        tracker.kill()
        tracker.wait()
        while b"step 60 " not in shown:
            shown += os.read(ours, 4096)
        self.assertTrue(shown.startswith(b"tty True\r\n"))
        self.stop()
        os.close(ours)
        self.assertEqual(self.place.run("watch", "--attach", 1)[0], 0)
        self.assertEqual(self.run_of()["status"], "finished")


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


class Bounds(Case):
    """A flood takes neither memory nor disk."""

    def peak_of(self, script):
        """The exit status and peak memory in bytes of the tracker, and the most bytes on disk beside the database."""
        out = os.open(os.devnull, os.O_WRONLY)
        tracker = subprocess.Popen([PROGRAM, "watch", "--", sys.executable, "-c", script], stdout=out, stderr=out,
                                   env=self.place.environment)
        os.close(out)
        spool, on_disk = pathlib.Path(f"{self.place.database}.watch/run-1.out"), 0
        while True:
            pid, status, used = os.wait4(tracker.pid, os.WNOHANG)
            if pid:
                break
            with contextlib.suppress(FileNotFoundError):
                on_disk = max(on_disk, spool.stat().st_blocks * 512)
            time.sleep(0.02)
        tracker.returncode = os.waitstatus_to_exitcode(status)
        return tracker.returncode, used.ru_maxrss * 1024, on_disk

    def check(self, script, megabytes):
        code, memory, on_disk = self.peak_of(f"import sys\nout = sys.stdout.buffer\nsize = 0\n"
                                             f"while size < {megabytes << 20}:\n{script}\n")
        print(f"{self.id().rsplit('.')[-1]}: {megabytes} MiB, {memory >> 20} MiB of memory, {on_disk >> 20} MiB on disk",
              file=sys.stderr)
        self.assertEqual(code, 0 if self.records() else 1)
        if "STEPLADDER_SANITIZED" not in os.environ:  # a sanitizer keeps freed memory
            self.assertLess(memory, MEMORY)
        self.assertLess(on_disk, 200 << 20)
        self.assertEqual(self.spools, [])

    def test_redrawn_lines_with_steps(self):
        megabytes = 330 if LONG else 3
        self.check(" lines = b''.join(b'\\rstep %d loss 2.5' % i for i in range(size // 20, size // 20 + 5000))\n"
                   " size += 5000 * 20; out.write(lines)", megabytes)
        count = -(-(megabytes << 20) // 100000) * 5000
        self.assertEqual(self.records(), count, "every step is kept")

    def test_redrawn_lines_without_steps(self):
        self.check(" size += out.write(b'\\r  3%|#      | 12/400 [00:03<01:40, 3.9it/s]' * 4000)", 660 if LONG else 24)

    def test_a_line_without_an_end(self):
        self.check(" size += out.write(b'x' * 200000)", 660 if LONG else 24)

    def test_binary(self):
        self.check(" size += out.write(bytes(range(256)) * 800)", 660 if LONG else 24)

    def test_lines_of_a_hundred_bars(self):
        self.check(" size += out.write(b'%|]' * 300000 + b'\\n')", 120 if LONG else 2)

    def test_lists_of_records(self):
        self.check(" size += out.write(b'[' + b'{\"a\":1},' * 100000 + b']\\n')", 120 if LONG else 4)


class Errors(Case):
    def test_a_second_tracker_after_a_flood(self):
        """Most of the output is freed by then, so it goes on after the last recorded step."""
        if not LONG:
            self.skipTest("long: 200 MiB")
        script = ENDLESS.format(folder=str(self.place.path), status=0).replace(
            "while not", "for step in range(100000): print('step', step, 'loss 2', 'x' * 2000)\nstep = 100000\nwhile not", 1)
        tracker = self.start(script, stderr=subprocess.DEVNULL)
        reader = threading.Thread(target=tracker.stdout.read, daemon=True)
        reader.start()
        self.until(lambda: len(self.steps()) > 100010, "no steps", 300)
        tracker.kill()
        time.sleep(1)
        (self.place.path / "stop").touch()
        self.assertLess((pathlib.Path(f"{self.place.database}.watch/run-1.out")).stat().st_blocks * 512, 150 << 20)
        self.assertEqual(self.place.run("watch", "--attach", 1)[0], 0)
        count = int((self.place.path / "end").read_text())
        self.assertEqual([step for step, _, _ in self.steps()], list(range(count)))
        self.assertEqual(self.records(), count)
        self.assertEqual(self.run_of()["status"], "finished")

    def lock(self, seconds):
        lock = sqlite3.connect(self.place.database, isolation_level=None, timeout=20)
        lock.execute("begin exclusive")
        time.sleep(seconds)
        lock.execute("rollback")
        lock.close()

    def test_a_lock_loses_nothing(self):
        script = ENDLESS.format(folder=str(self.place.path), status=0)
        tracker = self.start(script)
        self.until(lambda: len(self.steps()) >= 5, "no steps")
        self.lock(60 if LONG else 7)
        (self.place.path / "stop").touch()
        _, err = tracker.communicate(timeout=PATIENCE_S)
        self.assertEqual(tracker.returncode, 0, err)
        count = int((self.place.path / "end").read_text())
        self.assertEqual([step for step, _, _ in self.steps()], list(range(count)))
        self.assertEqual(self.run_of()["status"], "finished")

    def test_nothing_read_is_not_finished(self):
        done = subprocess.run([PROGRAM, "watch"], stdin=subprocess.DEVNULL, env=self.place.environment, capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "stepladder: standard input is empty, so no step was recorded; run 1 is kept as failed\n"))
        code, out, err = self.watch("print('no steps here')")
        self.assertEqual((code, out), (1, "no steps here\n"), "a watcher that has recorded nothing isn't done")
        self.assertRegex(err, "the output contains no training step: .*, so no step was recorded")
        self.assertEqual([run["status"] for run in self.place.json("runs")], ["failed", "failed"])
        self.assertTrue(self.reason(2).startswith("no step was recorded: the output contains no training step: "), self.reason(2))

    def test_secrets_of_a_command_line_are_not_stored(self):
        self.watch(f"print({STEPS!r})", "--name", "x")
        self.place.run("watch", "--", "env", "SOME_API_KEY=geheim1", "echo", "--password", "geheim2", "https://me:geheim3@host")
        for file in self.place.path.glob("runs.db*"):
            if file.is_file():
                self.assertNotIn(b"geheim1", file.read_bytes(), file)
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            line = json.loads(database.execute("select environment from runs where id = 2").fetchone()[0])["command_line"]
        self.assertTrue(line.endswith("watch -- env SOME_API_KEY=*** echo --password *** https://***@host"), line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
