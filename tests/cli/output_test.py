"""Output: streams that can't be written, files that must not be overwritten, tables, and error messages."""
import fcntl
import os
import pty
import sqlite3
import struct
import subprocess
import termios
import unittest

from program import PROGRAM, Workplace

STEPS = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 31))


class Case(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def log(self, name, content=STEPS):
        path = self.place.path / name
        path.write_text(content)
        return path

    def imported(self, name="mine.log", content=STEPS):
        run, = self.place.json("import", self.log(name, content))["runs"]
        return run

    def shell(self, line):
        return subprocess.run(["bash", "-c", line, "bash", PROGRAM], env=self.place.environment, text=True,
                              capture_output=True, cwd=self.place.path, timeout=60)

    def refused(self, words, *arguments):
        code, out, err = self.place.run(*arguments)
        self.assertEqual((code, out), (2, ""), err)
        self.assertTrue(err.startswith("stepladder: "), err)
        self.assertEqual(len(err.splitlines()), 1, err)
        for word in words:
            self.assertIn(word, err)
        return err


class Streams(Case):
    COMMANDS = ("runs", "runs --json", "show 1 --steps --json", "check", "mfu --published", "--help", "--version",
                "export 1 --format csv --out -")

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.imported()
        for command in self.COMMANDS:
            for stream in (">/dev/full", ">&-"):
                done = self.shell(f'"$1" {command} {stream}')
                self.assertEqual(done.returncode, 1, command + stream)
                self.assertIn("standard output cannot be written", done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_a_reader_may_leave(self):
        self.imported(content="".join(f"step {i} loss 2.0 dt 9ms\n" for i in range(1, 5000)))
        for command in self.COMMANDS:
            done = self.shell(f'"$1" {command} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}')
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)

    def test_no_file_gets_the_number_of_a_closed_stream(self):
        self.imported()
        done = self.shell('"$1" export 1 --out out.csv <&- >&- 2>&-')
        self.assertEqual(done.returncode, 0)
        lines = (self.place.path / "out.csv").read_text().splitlines()
        self.assertEqual(len(lines), 31)
        self.assertTrue(lines[0].startswith("run_id,"))

    def test_a_watched_program_on_a_full_disk_keeps_its_steps(self):
        log = self.log("steps.log")
        done = self.shell(f'"$1" watch --name full -- cat {log} >/dev/full')
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(self.shell(f'"$1" watch --name closed -- cat {log} >&-').returncode, 0)
        self.assertEqual([run["steps"] for run in self.place.json("runs")], [30, 30])


class Files(Case):
    def test_nothing_is_written_over_the_database(self):
        self.imported()
        view = ["screenshot", "--view", "history", "--out"]
        has_desktop = self.place.run(*view, self.place.path / "view.png")[0] == 0
        os.symlink(self.place.database, self.place.path / "link.csv")
        for name in ("runs.db", "runs.db-wal", "runs.db-shm", "../" + self.place.path.name + "/runs.db", "link.csv"):
            out = self.place.path / name
            self.refused(["--out", name, "database"], "export", 1, "--format", "csv", "--out", out)
            self.refused(["--out", name, "database"], "export", 1, "--format", "safetensors", "--out", out)
            if has_desktop:
                self.refused(["--out", name, "database"], *view, out)
        self.assertEqual(len(self.place.json("runs")), 1)

    def test_a_picture_that_cannot_be_written_leaves_nothing(self):
        view = ["screenshot", "--view", "history", "--out"]
        if self.place.run(*view, self.place.path / "view.png")[0] != 0:
            self.skipTest("this build has no desktop")
        self.assertEqual((self.place.path / "view.png").read_bytes()[:4], b"\x89PNG")
        for out in ("/dev/full", self.place.path, self.place.path / "none" / "x.png"):
            code, _, err = self.place.run(*view, out)
            self.assertEqual(code, 1)
            self.assertIn(str(out), err)

    def test_what_is_no_project_is_not_called_damaged(self):
        text = self.log("text.db", "a sentence\n" * 100)
        code, out, _ = self.place.run("--db", text, "doctor", "--database")
        self.assertEqual((code, out), (1, f"{text} is not a SQLite database\n"))


class Sentences(Case):
    def test_mistakes_of_a_command_line(self):
        self.refused(["'rums'", "did you mean runs?"], "rums")
        self.refused(["'frobnicate'", "--help"], "frobnicate")
        self.refused(["x.stepladder", "does not exist"], "x.stepladder")
        self.refused(["--dropout", "stepladder train --help"], "train", "--dropout", 0.1)
        self.refused(["'2'"], "show", 1, 2)
        self.refused(["--as"], "watch", "--as", "log", "--", "true")
        self.refused(["--nope"], "--nope")

    def test_help_is_of_the_command(self):
        self.assertIn("Without a command", self.place.run("--help")[1])
        self.assertNotIn("Without a command", self.place.run("runs", "--help")[1])

    def test_numbers_out_of_range_are_said_shortly(self):
        for option in ("--params", "--layers", "--gpus", "--throughput", "--peak-tflops"):
            for value in (0, -1, "nan", "inf", "many"):
                given = [] if option == "--params" else ["--params", 5]
                err = self.refused([option, str(value)], "mfu", *given, option, value)
                self.assertLess(len(err), 160)
        self.refused(["--noise-floor", "0 to 1"], "compare", 1, 2, "--noise-floor", "nan")
        self.refused(["--repeats", "1 to 1000"], "ladder", "--repeats", 0)
        self.refused(["--steps", "whole number", "2.5"], "train", "--steps", 2.5)
        self.refused(["--published"], "mfu", "--published", "--params", 5)
        self.assertEqual(self.place.json("mfu", "--params", "1.5e9")["params"], 1_500_000_000)

    def test_a_filter_that_cannot_be_understood(self):
        for words in ("colour=red", "=3", "steps>many", "steps="):
            self.refused(["--filter"], "runs", "--filter", words)

    def test_lists_of_nothing_are_empty(self):
        for command in ("runs", "check", "bin"):
            self.assertEqual(self.place.json(command), [])
            code, out, err = self.place.run(command)
            self.assertEqual((code, out), (0, ""))
            self.assertTrue(err)
        self.assertFalse(self.place.database.exists())


class Tables(Case):
    def test_an_import_says_when(self):
        run = self.imported()
        code, out, _ = self.place.run("import", self.log("other.log"))
        self.assertEqual(code, 0)
        self.assertRegex(out.splitlines()[1], r"20\d\d-\d\d-\d\d \d\d:\d\d$")
        with sqlite3.connect(self.place.database) as database:
            (first,), (second,) = database.execute("select created_at from runs order by id").fetchall()
        self.assertLessEqual(first, second)
        self.assertGreater(first, 1.7e9)

    def test_what_is_not_known_is_one_dash(self):
        run = self.imported(content="step 1 loss 2.5\nstep 2 loss 2.4\n")
        told = dict(line.split(maxsplit=1) for line in self.place.run("show", run["id"])[1].replace("step time", "step-time")
                    .replace("validation loss", "validation-loss").splitlines() if len(line.split()) == 2)
        for name in ("stage", "device", "precision", "attention", "validation-loss", "step-time", "throughput"):
            self.assertEqual(told.get(name), "-", told)
        for steps, words in ((3, "no warm-up step excluded"), (10, "1 warm-up step excluded"), (30, "3 warm-up steps excluded")):
            run = self.imported(f"{steps}.log", "".join(STEPS.splitlines(True)[:steps]))
            self.assertIn(words, self.place.run("show", run["id"])[1])

    def test_a_name_with_a_line_end_stays_on_its_line(self):
        self.imported("two\nlines \x1b[31m.log")
        out = self.place.run("runs")[1]
        self.assertEqual(len(out.splitlines()), 2)
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\x1b", self.place.run("check")[1])

    def test_a_terminal_is_not_overrun(self):
        ids = [self.imported(f"a log of many words that goes on and on {i}.log")["id"] for i in range(2)]
        for arguments in (["runs"], ["show", ids[0]], ["compare", *ids], ["stages"]):
            if arguments == ["stages"] and not (PROGRAM.parent / "libstepladder_trainer.so").exists():
                continue
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
            process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=theirs, stderr=subprocess.DEVNULL,
                                       stdin=subprocess.DEVNULL, env=self.place.environment)
            os.close(theirs)
            shown = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:
                    break
                if not piece:
                    break
                shown += piece
            os.close(ours)
            self.assertEqual(process.wait(20), 0)
            table = shown.decode().split("\r\n\r\nrun ")[0]
            self.assertLessEqual(max(len(line) for line in table.splitlines()), 80, table)


if __name__ == "__main__":
    unittest.main(verbosity=2)
