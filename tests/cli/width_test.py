"""Tables, notes, colour, pager and progress on terminals of several widths, with many runs."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import gpu_trace
from program import PATIENCE_S, PROGRAM, SMALLEST, TEXT, Workplace, read_terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = (60, 80, 120, 200)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Workplace()
        cls.addClassCleanup(cls.place.close)
        folder = cls.place.path / "logs"
        folder.mkdir()
        for i in range(300):
            steps = "".join(f"step {k} | loss {5 - k / 100:.2f} | val loss {5 - k / 110:.2f} | dt {100 + i % 7}.0ms | tok/sec 40960\n"
                            for k in range(1, 11))
            (folder / f"a log with a name that goes on and on {i:03}.log").write_text(steps)
        (folder / "impossible.log").write_text("".join(f"step {k} | loss 2.0 | dt 1.0ms | tok/sec 524288000\n" for k in range(1, 31)))
        imported = cls.place.json("import", "--flat", "--tokens-per-step", 524288, "--params", 124000000, "--gpu", "a100", folder)
        cls.runs = len(imported["runs"])
        gpu_trace.write(cls.place.path / "a trace with a name that goes on and on and on.json", 1_000, 4)
        cls.place.json("profile", "import", cls.place.path / "a trace with a name that goes on and on and on.json")
        gpu_trace.write(cls.place.path / "b.json", 1_200, 4)
        cls.place.json("profile", "import", cls.place.path / "b.json")
        cls.place.json("bin", imported["runs"][7]["id"])
        cls.place.json("train", *SMALLEST, "--steps", 12, "--name", "here")
        cls.place.json("sweep", *SMALLEST, "--over", "lr=1e-3,3e-3", "--over", "seed=1,2")
        for pool, steps in (("a", 300), ("b", 290)):
            (cls.place.path / pool).mkdir()
            for run in range(4):
                (cls.place.path / pool / f"{run}.log").write_text("".join(
                    f"step:{at}/{steps} val_loss:3.2{run}{at} train_time:{at * 100 + run}ms step_avg:100.0ms\n" for at in (100, 200, steps)))
        cls.runs += 4
        cls.ladder = imported["runs"][0]["ladder"]

    def terminal(self, columns, *arguments, rows=40, keys=b"", **environment):
        """What a terminal with that many columns shows, and the exit status."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        with_term = {**self.place.environment, "TERM": "xterm", "PAGER": "cat", **environment}
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=with_term,
                                   start_new_session=True)
        os.close(theirs)
        if keys:
            os.write(ours, keys)
        shown = read_terminal(ours).decode()
        return shown.replace("\r\n", "\n"), process.wait(PATIENCE_S)


class Tables(Case):
    LISTS = (("runs",), ("runs", "--limit", 0), ("runs", "--columns", "id,name,status,steps,loss_last,val_loss_last,dt_ms_median,tokens_per_s,device,trust"),
             ("compare", 1, 2, 3, 4), ("check",), ("stages",), ("mfu", "--published"), ("mfu", "--params", 124439808, "--throughput", 150000, "--gpu", "a100"),
             ("show", 1), ("ladders",), ("ladder", "show", 1), ("profile", "list"), ("bin",), ("doctor",), ("show", 99999),
             ("runs", "--filter", "status=finshed"), ("operators", "here"), ("operators", "here", "--shapes"), ("profile", "show", 1), ("profile", "show", 1, "--all"),
             ("profile", "show", 1, "--anatomy"), ("profile", "show", 1, "--roofline"), ("profile", "show", 1, "--steps"), ("profile", "diff", 1, 2),
             ("profile", "diff", "run:here", 2, "--all"), ("sweep", "show"), ("compare", 1, 2, "--metric", "loss"), ("show", "here", "--metrics"),
             ("show", "here", "--steps"), ("check", "--limit", 0), ("record", "{a}"), ("record", "{a}", "--against", "{b}"), ("record", "trade", "{a}", "{b}"),
             ("doctor", "--database"))

    def test_nothing_is_wider_than_the_terminal(self):
        pools = {"{a}": self.place.path / "a", "{b}": self.place.path / "b"}
        for columns in (40, *WIDTHS):
            for words in self.LISTS:
                arguments = [pools.get(word, word) for word in words]
                shown, status = self.terminal(columns, *arguments)
                with self.subTest(f"{arguments} at {columns}"):
                    self.assertIn(status, (0, 1, 2, 11, 12), shown[-300:])
                    self.assertTrue(status in (0, 11, 12) or arguments[-1] in (99999, "status=finshed"), shown[-300:])
                    if status not in (1, 2):
                        self.narrow(columns, arguments, shown)

    def narrow(self, columns, arguments, shown, ignored=()):
        lines = [COLOUR.sub("", line) for line in shown.splitlines() if not re.match(r"  --[a-z-]+ \S+\|", line)]  # values stay whole
        widest = max((line for line in lines if line.strip() not in ignored), key=len, default="")
        self.assertLessEqual(len(widest), columns, (columns, arguments, widest))

    def test_help_is_wrapped(self):
        def every(of):
            for command in of["commands"]:
                yield command
                yield from every(command)

        for columns in WIDTHS:
            for command in [self.place.json("help"), *every(self.place.json("help"))]:
                shown, status = self.terminal(columns, "help", *command["name"].split(), rows=1000)
                self.assertEqual(status, 0, command["name"])
                # An example is one line that can be copied, and a usage line is one.
                self.narrow(columns, command["name"], shown, {each["command"] for each in command["examples"]} | {"Usage: " + command["usage"]})

    def test_a_terminal_gets_the_newest_thirty(self):
        for words, what in ((("runs",), "runs"), (("ladders",), "ladders"), (("show", 1, "--steps"), "steps")):
            shown, _ = self.terminal(120, *words)
            self.assertEqual("--limit 0 shows all" in shown, words[0] == "runs", shown[-200:])
        shown, _ = self.terminal(120, "runs")
        self.assertIn(f"{self.runs - 30} more runs: --limit 0 shows all", shown)
        self.assertEqual(len(re.findall(r"(?m)^ *\d+  ", COLOUR.sub("", shown))), 30)
        self.assertIn(f"{self.runs - 5} more runs", self.terminal(120, "runs", "--limit", 5)[0])
        self.assertNotIn("more runs", self.terminal(120, "runs", "--limit", 0)[0])
        self.assertEqual(len(json.loads(self.terminal(120, "runs", "--json")[0])), self.runs)
        self.assertEqual(len(self.place.run("runs")[1].splitlines()), self.runs + 3, "all, to a pipe; a head, a blank line and one on trust")

    def test_a_run_is_a_line(self):
        for columns in WIDTHS:
            shown, _ = self.terminal(columns, "runs", "--filter", "name~goes")
            lines = [line for line in COLOUR.sub("", shown).splitlines() if re.match(r" *\d+  ", line)]
            self.assertGreater(len(lines), 20, shown[:500])
            self.assertTrue(all(" 10 " in line or "finished" in line for line in lines), shown[:500])
            if columns < 200:
                self.assertIn("…", lines[0])
                self.assertRegex(lines[0], r"a log.*…")

    def test_what_is_dropped_is_said(self):
        shown, _ = self.terminal(60, "runs")
        self.assertIn("(a wider terminal also shows: ", shown)
        self.assertNotIn("also shows", self.terminal(250, "runs")[0])
        wide = self.terminal(200, "compare", 1, 2, 3)[0]
        self.assertIn("largest gap", wide)
        narrow = self.terminal(80, "compare", 1, 2, 3)[0]
        self.assertIn("verdict", narrow.splitlines()[0])
        self.assertIn("also shows: largest gap", narrow)
        records = self.terminal(50, "compare", 1, 2, 3)[0]
        self.assertRegex(records, r"(?m)^verdict +")

    def test_a_pipe_gets_everything(self):
        out = self.place.run("runs", "--columns", "id,name,device")[1]
        self.assertIn("a log with a name that goes on and on 299", out)
        self.assertNotIn("…", out)
        self.assertNotIn("\x1b", out)


class Colours(Case):
    def test_verdict_trust_and_flags(self):
        shown, _ = self.terminal(120, "check")
        self.assertRegex(shown, r"\x1b\[31mimpossible-throughput\x1b\[0m")
        self.assertRegex(self.terminal(120, "compare", 1, 2, 3)[0], COLOUR)
        run = next(run["id"] for run in self.place.json("runs", "--filter", "trust=impossible"))
        self.assertRegex(self.terminal(120, "show", run)[0], r"\x1b\[31mimpossible\x1b\[0m")

    def test_when(self):
        plain = (dict(NO_COLOR="1"), dict(TERM="dumb"))
        for environment in plain:
            self.assertNotRegex(self.terminal(120, "check", **environment)[0], COLOUR)
        self.assertNotRegex(self.terminal(120, "check", "--color", "never")[0], COLOUR)
        self.assertRegex(self.terminal(120, "check", "--color", "always", NO_COLOR="1")[0], COLOUR)
        self.assertRegex(self.place.run("check", "--color", "always")[1], COLOUR)
        self.assertNotRegex(self.place.run("check")[1], COLOUR)
        self.assertEqual(self.place.run("check", "--color", "sometimes")[0], 2)

    def test_foreign_escape_sequences_stay_harmless(self):
        log = self.place.path / "strange.log"
        log.write_text("step 1 loss 2\nstep 2 loss 1\n")
        self.place.json("import", log, "--again")
        for name in ("\x1b[31mred", "\x1e1red", "slower"):
            (self.place.path / f"x{name}.log").write_text(f"step 1 loss 2.{len(name)}\nstep 2 loss 1\n")
            run, = self.place.json("import", "--again", self.place.path / f"x{name}.log")["runs"]
            shown, _ = self.terminal(200, "runs", "--filter", f"id={run['id']}")
            self.assertNotRegex(shown, "\x1b\\[31m")
            self.place.run("bin", run["id"])


class Pager(Case):
    def test_as_git_has_it(self):
        pager = self.place.path / "pager"
        pager.write_text("#!/bin/sh\necho PAGED $LESS; cat\n")
        pager.chmod(0o755)
        check = ("check",)
        self.assertIn("PAGED FRX", self.terminal(80, *check, PAGER=str(pager))[0])
        self.assertIn("PAGED", self.terminal(80, *check, PAGER="cat", STEPLADDER_PAGER=str(pager))[0])
        for help_of in (("--help",), ("train", "--help"), ("help",)):
            self.assertIn("PAGED", self.terminal(80, *help_of, rows=24, PAGER=str(pager))[0], help_of)
        for arguments, environment in ((("--no-pager", "check"), {}), (("check",), dict(TERM="dumb")), (("stages",), dict(rows=200)),
                                       (("check",), dict(STEPLADDER_PAGER="")), (("check",), dict(PAGER="/no/such/pager"))):
            rows = environment.pop("rows", 40)
            shown, status = self.terminal(80, *arguments, rows=rows, **{"PAGER": str(pager), **environment})
            self.assertNotIn("PAGED", shown, (arguments, environment))
            self.assertGreater(len(shown.splitlines()), 3)
            self.assertEqual(status, 0)
        piped = subprocess.run([PROGRAM, "check"], env={**self.place.environment, "PAGER": str(pager)}, capture_output=True, text=True)
        self.assertNotIn("PAGED", piped.stdout)

    def test_an_error_is_shown_whole(self):
        shown, status = self.terminal(80, "show", 99999, PAGER="less")
        self.assertEqual((shown, status), ("stepladder: there is no run 99999; `stepladder runs` lists them\n", 1))


@unittest.skipUnless((PROGRAM.parent / "libstepladder_trainer.so").exists(), "this build doesn't train")
class Progress(Case):
    def test_json_and_never(self):
        code, out, err = self.place.run("train", *SMALLEST, "--steps", 3000, "--progress", "json", "--json")
        self.assertEqual(code, 0, err)
        json.loads(out)
        lines = [json.loads(line) for line in err.splitlines()]
        self.assertEqual(lines[-1]["ended"]["status"], "finished")
        for line in lines[:-1]:
            self.assertLessEqual({"run", "step", "planned_steps", "loss", "seconds_left"}, set(line["progress"]))
        code, _, err = self.place.run("train", *SMALLEST, "--steps", 20, "--progress", "never")
        self.assertEqual((code, err), (0, ""))
        _, _, err = self.place.run("train", *SMALLEST, "--steps", 20, "--sample-every", 10, "--sample-tokens", 4, "--data", TEXT,
                                   "--progress", "json")
        notes = [line["note"] for line in map(json.loads, err.splitlines()) if "note" in line]
        self.assertEqual([note.splitlines()[0] for note in notes], ["text after step 10:", "text after step 20:"])

    def test_no_color_keeps_the_progress_line(self):
        shown, _ = self.terminal(120, "train", *SMALLEST, "--steps", 3000, NO_COLOR="1")
        self.assertIn("[==", shown)
        self.assertNotRegex(shown, COLOUR)

    def test_a_line_every_half_minute_off_a_terminal(self):
        process = self.place.start("train", *SMALLEST, "--steps", 100_000_000)
        try:
            lines, deadline = [process.stderr.readline()], time.monotonic() + 100
            process.send_signal(signal.SIGSTOP)  # other tests have its core meanwhile
            time.sleep(28)
            process.send_signal(signal.SIGCONT)
            while time.monotonic() < deadline and not any("step " in line and "left" in line for line in lines):
                if select.select([process.stderr], [], [], 1)[0]:
                    lines.append(process.stderr.readline())
            self.assertRegex("".join(lines), r"step [\d,]+/100,000,000  loss .* left")
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)


if __name__ == "__main__":
    unittest.main(verbosity=2)
