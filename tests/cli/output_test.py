"""Output: streams that can't be written, files that must not be overwritten, tables, and error messages."""
import csv
import fcntl
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios
import unittest

from program import PATIENCE_S, PROGRAM, Workplace, read_terminal

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
        run, = self.place.json("import", "--again", self.log(name, content))["runs"]
        return run

    def shell(self, line):
        return subprocess.run(["bash", "-c", line, "bash", PROGRAM], env=self.place.environment, text=True,
                              capture_output=True, cwd=self.place.path, timeout=PATIENCE_S)

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

    def test_a_pipe_is_written_to_and_stays_one(self):
        logs = self.place.path / "logs"
        logs.mkdir()
        for run in range(3):
            (logs / f"{run}.log").write_text("".join(f"step {at} | loss 2.0 | dt {100 + run}.0ms\n" for at in range(30)))
        pipe = self.place.path / "baseline.json"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.assertEqual(self.place.run("record", "gate", logs, "--out", pipe)[0], 0)
        self.assertIn("values", json.loads(reader.communicate(timeout=PATIENCE_S)[0]))
        self.assertTrue(pipe.is_fifo())

    def test_what_is_no_project_is_not_called_damaged(self):
        text = self.log("text.db", "a sentence\n" * 100)
        code, out, _ = self.place.run("--db", text, "doctor", "--database")
        self.assertEqual((code, out), (1, f"{text} is not a SQLite database\n"))


class Sentences(Case):
    def test_an_empty_database_name_does_not_select_the_users_own_file(self):
        self.refused(["--db", "empty"], "--db", "", "runs")
        self.refused(["--db", "empty"], "bin", "--empty", "--db=")
        self.refused(["--db", "empty"], "--db=", "runs")  # not a file called "runs"
        self.refused(["--name", "empty"], "watch", "--name=", "--", "true")
        self.assertFalse((self.place.path / "runs").exists())

    def test_mistakes_of_a_command_line(self):
        self.refused(["'rums'", "did you mean runs?"], "rums")
        self.refused(["'frobnicate'", "--help"], "frobnicate")
        self.assertEqual(self.place.run("x.stepladder")[0::2], (1, "stepladder: x.stepladder does not exist\n"))
        self.refused(["--dropout", "stepladder train --help"], "train", "--dropout", 0.1)
        self.refused(["'2'"], "get", 1, "id", 2)
        self.refused(["--as"], "watch", "--as", "log", "--", "true")
        self.refused(["--nope"], "--nope")

    def test_help_is_of_the_command(self):
        self.assertIn("opens the window", self.place.run("--help")[1])
        self.assertNotIn("opens the window", self.place.run("runs", "--help")[1])

    def test_numbers_out_of_range_are_said_shortly(self):
        for option in ("--params", "--layers", "--gpus", "--throughput", "--peak-tflops"):
            for value in (0, -1, "nan", "inf", "many"):
                given = [] if option == "--params" else ["--params", 5]
                err = self.refused([option, str(value)], "mfu", *given, option, value)
                self.assertLess(len(err), 160)
        self.refused(["--noise-floor", "0% to 100%"], "compare", 1, 2, "--noise-floor", "nan")
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


# What names, notes and paths may hold: a title, a cleared screen, C1's CSI, an overridden direction, half a character.
HOSTILE = "a\x1b]0;t\x07\x1b[2J\x9b31m\u202etxt\u2066\x7f"
STEERS = [chr(c) for c in (*range(0x20), 0x7f, *range(0x80, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x202a, 0x202f),
                           *range(0x2066, 0x206a)) if chr(c) not in "\n\t"]


class StrangersText(Case):
    def on_terminal(self, *arguments):
        """Both streams as a terminal receives them."""
        ours, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=theirs, stderr=theirs,
                                   stdin=subprocess.DEVNULL, env=self.place.environment)
        os.close(theirs)
        shown = read_terminal(ours)
        process.wait(PATIENCE_S)
        return shown

    def steers_nothing(self, *arguments):
        status, out, err = self.place.run(*arguments)
        shown = out + err
        self.assertTrue(shown, arguments)
        for character in STEERS:
            self.assertNotIn(character, shown, f"{arguments}: {shown!r}")
        return status, out, err

    def hostile_project(self):
        ids = [self.imported(f"{i}.log")["id"] for i in range(2)]
        with sqlite3.connect(self.place.database) as database:
            database.execute("INSERT INTO ladders (name, created_at) VALUES (?, 1)", [HOSTILE])
            database.execute(f"UPDATE runs SET name = id || ?1, stage = ?1, title = ?1, changed = ?1, status = 'failed', "
                             "reason = ?1, hardware = ?1, device = ?1, ladder_id = (SELECT max(id) FROM ladders), "
                             "rung = id", [HOSTILE])
            database.execute("INSERT INTO profiles (run_id, at, steps) VALUES (1, 1, 1), (2, 1, 1)")
            for run in ids:
                database.execute("INSERT INTO operators (run_id, part, name, shapes, calls, self_ms) "
                                 "VALUES (?1, ?2, ?2, ?2, 1, 1)", [run, HOSTILE])
            database.execute("INSERT INTO console (run_id, part, at, text) VALUES (1, 1, 1, ?)",
                             [HOSTILE.encode() + b"\xff\r\n\x1b[32mgreen\x1b[0m\n"])
        return ids

    def test_no_command_lets_text_steer_the_terminal(self):
        self.hostile_project()
        for command in (["runs"], ["show", 1], ["show", 1, "--steps"], ["check"], ["compare", 1, 2], ["operators", 1],
                        ["operators", 1, "--shapes"], ["operators", 1, 2], ["doctor", "--database"], ["show", HOSTILE],
                        ["export", 1, "--format", HOSTILE, "--out", "x"], ["export", 1, "--format", "md", "--out", "-"],
                        ["export", 1, 2, "--format", "svg", "--out", "-"], ["runs", "--filter", HOSTILE], [HOSTILE],
                        ["--db", self.place.path / HOSTILE, "show", 1], ["runs", "--nope" + HOSTILE],
                        ["export", 1, 2, "--format", "html", "--out", "-"], ["mfu", "--params", HOSTILE],
                        ["export", 1, 2, "--format", "tex", "--out", "-"],
                        ["import", self.place.path / HOSTILE], ["import", "--gpu", HOSTILE, self.log("2.log")],
                        ["train", "--resume", HOSTILE]):
            if command[0] == "train" and not (PROGRAM.parent / "libstepladder_trainer.so").exists():
                continue
            self.steers_nothing(*command)

    def test_json_gives_the_text_back_and_steers_nothing(self):
        self.hostile_project()
        for command in (["runs"], ["show", 1], ["check"], ["compare", 1, 2], ["operators", 1]):
            status, out, _ = self.steers_nothing(*command, "--json")
            self.assertEqual(status, 0)
            self.assertIn(("2" if command[0] == "compare" else "1") + HOSTILE, self.strings(json.loads(out)))

    def strings(self, value):
        if isinstance(value, dict):
            return [text for each in value.values() for text in self.strings(each)]
        if isinstance(value, list):
            return [text for each in value for text in self.strings(each)]
        return [value] if isinstance(value, str) else []

    def test_console_is_unchanged_but_on_a_terminal(self):
        self.hostile_project()
        done = subprocess.run([PROGRAM, "show", "1", "--console"], env=self.place.environment, capture_output=True)
        self.assertEqual(done.stdout, HOSTILE.encode() + b"\xff\r\n\x1b[32mgreen\x1b[0m\n")
        shown = self.on_terminal("show", 1, "--console").decode()
        self.assertTrue(shown.endswith("green\n"), shown)
        for character in STEERS:
            self.assertNotIn(character, shown)

    def test_an_export_to_a_terminal_steers_nothing(self):
        self.hostile_project()
        for form in ("csv", "json"):
            shown = self.on_terminal("export", 1, "--format", form, "--out", "-").decode()
            self.assertIn("txt", shown)
            for character in STEERS:
                self.assertNotIn(character, shown)

    def test_a_spreadsheet_takes_no_name_for_a_formula(self):
        self.imported("=1+1.log")
        for table in ([], ["--table"]):
            rows = list(csv.DictReader(self.place.run("export", 1, "--format", "csv", *table, "--out", "-")[1].splitlines()))
            self.assertEqual(rows[0]["name"], "'=1+1")
        self.place.run("export", 1, "--out", self.place.path / "ours.csv")
        again, = self.place.json("import", self.place.path / "ours.csv")["runs"]
        self.assertEqual(again["name"], "=1+1")

    def test_a_long_name_is_refused_or_cut_with_a_note(self):
        self.refused(["--name", "500 bytes", "60,000"], "watch", "--name", "x" * 60_000, "--", "true")
        rows = "".join(f"{'y' * 3000},{i},2.5\n" for i in range(1, 5))
        outcome = self.place.json("import", self.log("wide.csv", "run,step,loss\n" + rows))
        self.assertLessEqual(len(outcome["runs"][0]["stage"].encode()), 500)
        self.assertTrue(any("3,000 bytes" in note["text"] for note in outcome["notes"]), outcome["notes"])
        with sqlite3.connect(self.place.database) as database:
            database.execute("UPDATE runs SET name = hex(zeroblob(30000000)), title = name, reason = name")
        for command in (["runs"], ["show", 1], ["check"], ["runs", "--json"]):
            status, out, err = self.place.run(*command, timeout=PATIENCE_S)
            self.assertEqual(status, 0, err)
            self.assertLess(len(out), 40_000)

    def test_hardware_that_is_not_known_is_said(self):
        code, _, err = self.place.run("import", "--gpu", "zork", self.log("a.log"))
        self.assertEqual(code, 0)
        self.assertIn("no 'zork'", err)
        self.assertIn("hardware.csv", err)
        self.assertIn("did you mean h100", self.place.run("import", "--gpu", "hh100", self.log("c.log"))[2])
        self.assertNotIn("hardware table", self.place.run("import", "--gpu", "a100", self.log("b.log"))[2])

    def test_a_run_is_not_compared_with_itself(self):
        self.imported()
        self.refused(["run 1 is compared with itself"], "compare", 1, 1)
        self.refused(["run 1 is compared with itself"], "compare", 1, 1, "--gate")


class Tables(Case):
    def test_an_import_says_when(self):
        run = self.imported()
        code, out, _ = self.place.run("import", "--again", self.log("other.log"))
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
            shown = read_terminal(ours)
            self.assertEqual(process.wait(PATIENCE_S), 0)
            table = shown.decode().split("\r\n\r\nrun ")[0]
            self.assertLessEqual(max(len(re.sub(r"\x1b\[[0-9]+m", "", line)) for line in table.splitlines()), 80, table)


if __name__ == "__main__":
    unittest.main(verbosity=2)
