"""The contract of scripts, checked over every command that `help --json` lists: --json is accepted, stdout is one JSON document whose keys never come
and go, an error is one line of JSON on stderr, 2 is a malformed command line and 1 what isn't there, and --help teaches."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import gpu_trace
from program import PATIENCE_S, PROGRAM, SMALLEST, Workplace
from record_test import log_text

TRAINS = (PROGRAM.parent / "libstepladder_trainer.so").exists()
RUN_FIELDS = set("id name ladder stage repeat status source source_path steps first_step last_step loss_first loss_last loss_min val_loss_last "
                 "val_loss_min dt_ms_median tokens_per_step tokens_per_s warmup_steps params model_flops_per_token mfu mfu_convention device hardware "
                 "precision sync flags trust stages paused created_at ended_at tags note pinned archived exit_status".split())
PRINTS = "for i in range(1, 31): print(f'step {i} | loss {5 - i / 100:.3f} | dt 100.{i % 3}ms | tok/sec 20480')"


def commands(of):
    for command in of["commands"]:
        yield command
        yield from commands(command)


def shape(value):
    """The keys of a document, at every depth; of lists, those of their items together. Unknown (null) has any shape."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else None


def differ(one, other, where=""):
    """The places where two shapes differ by more than what is unknown or empty."""
    if isinstance(one, dict) and isinstance(other, dict):
        return ([f"{where}: {set(one) ^ set(other)}"] if set(one) != set(other) else []) + \
            [each for key in set(one) & set(other) for each in differ(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list) and isinstance(other, list):
        return [each for a in one for b in other for each in differ(a, b, where + "[]")]
    return []


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Workplace()
        cls.addClassCleanup(cls.place.close)
        cls.place.environment.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull, HOME=str(cls.place.path))
        cls.commands = {command["name"]: command for command in commands(cls.place.json("help"))}
        path = cls.place.path
        for folder in ("logs", "speedruns", "longer", "csv"):
            (path / folder).mkdir()
        for i, name in enumerate("abc"):
            (path / "logs" / f"{name}.log").write_text("".join(
                f"step {k} | loss {5 - k / 100:.3f} | val loss {5 - k / 110:.3f} | dt {100 + i}.{k % 3}ms | tok/sec 20480\n" for k in range(1, 41)))
        (path / "lonely.log").write_text("".join(f"step {k} loss {4 - k / 100:.3f}\n" for k in range(1, 11)))
        (path / "csv" / "run.csv").write_text("step,loss\n" + "".join(f"{k},{3 - k / 100}\n" for k in range(1, 20)))
        for i in range(3):
            (path / "speedruns" / f"{i}.txt").write_text(log_text(3.277, 97.5 + 0.05 * i, i / 1000, 10 + i))
            (path / "longer" / f"{i}.txt").write_text(log_text(3.267, 97.6 + 0.05 * i, i / 1000, 13 + i, steps=350))
        gpu_trace.write(path / "trace.json", 1_000, 4)
        cls.place.json("import", "--flat", "--tokens-per-step", 2048, path / "logs")   # runs 1 to 3, ladder 1
        cls.place.json("import", path / "lonely.log")                                 # run 4
        cls.place.json("profile", "import", path / "trace.json")
        cls.place.json("machines", "add", "box", "--local")

    def documents(self, *arguments, allowed=(0,)):
        """The one document that a call with --json prints."""
        arguments = [str(each) for each in arguments]
        at = arguments.index("--") if "--" in arguments else len(arguments)
        status, out, err = self.place.run(*arguments[:at], "--json", *arguments[at:])
        self.assertIn(status, allowed, f"{arguments}: {err}")
        try:
            return json.loads(out, parse_constant=lambda word: self.fail(f"{arguments}: {word} is no JSON"))
        except ValueError as error:
            self.fail(f"{arguments}: {error}: {out[:300]!r}")

    def error(self, status, *arguments):
        """The parts of the error, which is one line on stderr beside an empty stdout."""
        code, out, err = self.place.run(*arguments, "--json")
        self.assertEqual((code, out), (status, ""), f"{arguments}: {err}")
        self.assertEqual(len(err.splitlines()), 1, f"{arguments}: {err}")
        error = json.loads(err)["error"]
        self.assertEqual(set(error), {"code", "argument", "value", "message", "hint"}, arguments)
        self.assertTrue(error["code"] and error["message"], error)
        self.assertNotRegex(err, "[\x00-\x09\x0b-\x1f]")
        return error


class EveryCommand(Case):
    # What works in the project above: by command, the words behind it, and the exit statuses that it may have. None: it
    # trains, asks another machine, or is judged by a test of its own, named here.
    def calls(self):
        path = self.place.path
        judged = (0, 10, 11, 12, 13)
        out = iter(path / f"out{i}" for i in range(99))
        return {
            "ladder": (["--dry-run", "--stages", "bf16"], (0,)) if TRAINS else None, "ladder show": ([], (0,)), "ladders": ([], (0,)),
            "train": ([*SMALLEST, "--steps", 3], (0,)) if TRAINS else None,
            "sweep": ([*SMALLEST, "--steps", 3, "--over", "lr=1e-3,1e-4"], (0,)) if TRAINS else None,
            "sweep show": ([], (0,)) if TRAINS else None, "stages": ([], (0,)), "compare": (["1", "2", "3"], (0,)),
            "confirm": None,  # confirm_test
            "check": ([], (0,)), "mfu": (["--published"], (0,)), "import": (["--again", path / "lonely.log"], (0,)),
            "watch": (["--", sys.executable, "-c", PRINTS], (0,)), "follow": (["--once", path / "csv"], (0,)), "runs": ([], (0,)),
            "show": (["1"], (0,)), "get": (["1", "tokens_per_s"], (0,)), "edit": (["1", "--tag", "good"], (0,)),
            "pause": None, "unpause": None, "stop": None,  # of a run under way: ladders_test
            "delete": (["3"], (0,)), "bin": ([], (0,)), "restore": (["3"], (0,)),
            "profile": (["--model", "small", "--batch", 1, "--seq", 8, "--vocab", 300, "--steps", 1, "--warmup", 0, "--no-keep"], (0,)) if TRAINS else None,
            "profile time": None, "profile run": None,  # profile_test
            "profile import": ([path / "trace.json", "--name", "again"], (0,)), "profile passes": ([], (0,)), "profile list": ([], (0,)),
            "profile show": (["1"], (0,)), "profile diff": (["1", "2"], (0,)), "profile export": (["1", "--out", next(out)], (0,)),
            "profile attach": (["1", "none"], (0,)), "profile remove": (["2"], (0,)), "predict": (["profile:1"], (0,)),
            "operators": (["1", "2"], (0,)),
            "record": ([path / "speedruns"], judged), "record judge": ([path / "speedruns", "--against", path / "longer"], judged),
            "record run": ([next(out), "--repeats", 2, "--against", f"{sys.executable} -c \"{PRINTS}\"", "--candidate",
                            f"{sys.executable} -c \"{PRINTS}; pass\""], judged),
            "record gate": (["--command", f"{sys.executable} -c \"{PRINTS}\"", "--out", next(out), "--repeats", 2], (0,)),
            "record trade": ([path / "speedruns", path / "longer"], judged), "record source": ([path / "speedruns" / "0.txt"], (0,)),
            "record diff": ([path / "speedruns" / "0.txt", path / "longer" / "0.txt"], (0,)),
            "record export": None,  # record_test
            "export": (["1", "--out", path / "x.csv"], (0,)), "screenshot": None,  # commands_test
            "machines": None, "machines check": None, "machines setup": None, "machines adopt": None,  # tests/machines
            "machines add": (["pen", "--local"], (0,)), "machines remove": (["pen"], (0,)), "machines follow": ([], (0,)),
            "setup-training": (["--remove"], (0,)),
            "doctor": ([], (0,)), "help": ([], (0,)), "completion": (["bash"], (0,)), "skill": ([], (0,)),
            "mcp": None,  # mcp_test
            **{name: None for name in self.commands if name.split()[0] == "try"},  # try_test
        }

    def test_json_is_one_document(self):
        calls = self.calls()
        self.assertEqual(set(self.commands) - set(calls), set(), "a new command gets a row in `calls`")
        for name, call in calls.items():
            if call and name in self.commands:
                with self.subTest(name):
                    self.documents(*name.split(), *call[0], allowed=call[1])

    def test_what_is_not_there_is_1(self):
        missing = {"RUN": "999", "LADDER": "999", "TRACE": "999", "MACHINE": "nobody", "FILE": "nofile", "POOL": "nofolder", "RUN@STEP": "999@3"}
        tried = 0
        for name, command in self.commands.items():
            # watch of machines: `add` makes one; a try's errors are try_test's; what is hidden has no row.
            if name in ("machines add", "completion", "help") or name.split()[0] == "try":
                continue
            words, kinds = [], []
            for option in command["options"]:
                is_position = not option["name"].startswith("-")
                if is_position and option["value"] in missing and (option["required"] or not kinds):
                    words.append(missing[option["value"]])
                    kinds.append(option["value"])
                elif option["required"]:
                    words += [option["name"], str(self.place.path / "new.csv")] if not is_position else ["id"]
            if not kinds:
                continue
            if name in ("edit", "compare"):
                words.append({"edit": "--pin", "compare": "998"}[name])
            if name == "follow":
                words.append("--once")
            with self.subTest(name):
                tried += 1
                if name == "import":  # which says in its document what wasn't imported
                    document = self.documents(name, *words, allowed=(1,))
                    self.assertIn("nofile", document["errors"][0])
                    continue
                error = self.error(1, *name.split(), *words)
                if kinds[0] in ("RUN", "LADDER", "TRACE", "MACHINE") and "passes" not in name:
                    self.assertRegex(error["code"], "^no-such-(run|ladder|trace|machine)$", error)
                    self.assertTrue(error["hint"], error)
        self.assertGreater(tried, 25)

    def test_every_option_refuses_what_is_no_value(self):
        """Of each option: nothing, an empty value, and for closed sets and numbers another word."""
        tried = 0
        for name, command in self.commands.items():
            for option in command["options"]:
                if not option["name"].startswith("-") or option["value"] is None:
                    continue
                given, words = option["name"], name.split()
                with self.subTest(f"{name} {given}"):
                    if given not in ("--continue", "--noise"):  # their value may be left out
                        for rest in ([given], [given, "--no-pager"]):
                            error = self.error(2, *words, *rest)
                            self.assertEqual((error["code"], error["argument"]), ("missing-value", given))
                    error = self.error(2, *words, given + "=")
                    self.assertEqual(error["argument"], given)
                    tried += 3
                    if option["value"] in ("N", "X", "PERCENT") or "|" in option["value"]:
                        error = self.error(2, *words, given, "frobnicate")
                        self.assertEqual((error["code"], error["argument"], error["value"]), ("invalid-value", given, "frobnicate"))
                        tried += 1
        self.assertGreater(tried, 800)

    def test_every_help_teaches(self):
        for name, command in self.commands.items():
            with self.subTest(name):
                out = self.place.run(*name.split(), "--help")[1]
                self.assertGreaterEqual(len(command["examples"]), 2)
                self.assertIn("Exit status\n  0 done, 1 failed", out)
                self.assertIn("--json", out)
                examples = {line.strip() for line in out.splitlines() if line.startswith("  stepladder ")}
                self.assertLessEqual({example["command"] for example in command["examples"]}, examples)
                self.assertLessEqual(max(len(line) for line in out.splitlines() if line.strip() not in examples), 100, "without a terminal")


class Machines(Case):
    def test_a_machine_that_came_with_the_file(self):
        """For another user of the project the machine is one of the file, which nothing connects to."""
        self.place.environment["XDG_STATE_HOME"] = str(self.place.path / "another-state")
        for words in (["machines", "check", "box"], ["train", "--on", "box"], ["watch", "--on", "box"], ["machines", "remove", "box"]):
            error = self.error(2, *words)
            if words[0] != "watch":  # which lacks its command
                self.assertIn("machines adopt box", error["hint"] or error["message"])
        error = self.error(2, "machines", "adopt", "box")
        self.assertEqual(error["argument"], "--yes")
        self.assertEqual(self.error(1, "machines", "adopt", "nobody")["code"], "no-such-machine")
        self.assertEqual(self.documents("machines", "adopt", "box", "--yes")[0]["alias"], "box")


class Keys(Case):
    """Of no run, one and many, the same keys."""

    def test_runs_have_the_same_keys_wherever_they_come_from(self):
        run = self.documents("watch", "--", sys.executable, "-c", PRINTS)
        self.documents("watch", "--", "true", allowed=(1,))
        if TRAINS:
            self.documents("train", *SMALLEST, "--steps", 12)
        runs = self.documents("runs")
        self.assertEqual(RUN_FIELDS - set(runs[0]), set())
        for each in [*runs, run]:
            self.assertEqual(set(each), set(runs[0]), each["name"])
        shown = [self.documents("show", each["id"]) for each in runs]
        for each in shown:
            self.assertEqual(set(each), set(shown[0]), each["name"])

    def test_lists_and_documents(self):
        empty = Workplace()
        self.addCleanup(empty.close)
        for words in (["runs"], ["ladders"], ["check"], ["bin"], ["profile", "list"], ["profile", "passes"], ["machines"]):
            self.assertEqual(empty.json(*words), [], words)
        self.assertFalse(empty.database.exists(), "nothing is made by reading")
        for option, value in (("target", "4.9"), ("metric", "loss")):  # an option adds its key; data never does
            self.assertEqual(set(self.documents("compare", "1", "2", f"--{option}", value)) - set(self.documents("compare", "1", "2")), {option})
        imported = [self.documents("import", *words) for words in (
            ["--again", self.place.path / "lonely.log"], [self.place.path / "lonely.log"], ["--again", "--flat", self.place.path / "logs"],
            ["--dry-run", "--again", self.place.path / "lonely.log"])]
        compared = [self.documents("compare", *words) for words in (["1", "2"], ["1", "2", "3"], ["1", "4"], ["--against", "1", "2"])]
        ladders = [self.documents("ladder", "show", each["id"]) for each in self.documents("ladders")]
        for documents in (imported, compared, ladders, [[each] for each in self.documents("check")], [[each] for each in self.documents("ladders")]):
            for other in documents[1:]:
                self.assertEqual(differ(shape(documents[0]), shape(other)), [])

    def test_compare_by_option_is_compare_by_place(self):
        self.assertEqual(self.documents("compare", "1", "2", "3"), self.documents("compare", "--against", "1", "2-3"))
        self.assertEqual(self.error(2, "compare", "1")["code"], "missing-argument")
        self.assertEqual(self.error(2, "compare", "--against", "1-2", "3")["argument"], "run")

    def test_argument_and_value_are_those_of_the_command_line(self):
        for status, code, argument, value, words in (
                (1, "not-found", None, "nofile", ("profile", "import", "nofile")), (1, "not-found", "--data", "nofile", ("train", "--data", "nofile")),
                (1, "not-found", "-o", "no/x.csv", ("export", 1, "-o", "no/x.csv")), (2, "invalid-value", "--steps", "0", ("train", "--steps", 0)),
                (2, "invalid-value", "--steps", "0", ("train", "--steps=0")), (2, "invalid-value", "--view", "ladders", ("screenshot", "--view", "ladders", "-o", "q.png")),
                (2, "invalid-value", "--tolerance", "-1%", ("compare", 1, 2, "--tolerance", "-1%")), (1, "failed", "--db", "/etc", ("runs", "--db", "/etc"))):
            error = self.error(status, *words)
            self.assertEqual((error["code"], error["argument"], error["value"]), (code, argument, value), words)

    @unittest.skipUnless(TRAINS, "nothing trains here")
    def test_a_run_that_fails_is_an_error_beside_its_document(self):
        code, out, err = self.place.run("train", *SMALLEST, "--steps", 20, "--lr", "1e30", "--json")
        self.assertEqual((code, json.loads(out)["status"]), (1, "failed"))
        self.assertEqual(json.loads(err.splitlines()[-1])["error"]["code"], "run-failed")

    def test_stdout_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "runs", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, env=self.place.environment, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, json.loads(done.stderr)["error"]["code"]), (1, "failed"))

    def test_the_baseline_has_the_keys_of_the_others(self):
        base, other = self.documents("compare", "1", "2", "--metric", "loss")["metric"]["runs"]
        self.assertEqual(set(base), set(other))
        for key in ("delta", "factor", "best_delta", "best_factor", "difference", "ci95", "verdict", "repeats", "needed_runs"):
            self.assertIsNone(base[key], key)
        for runs in (["1"], ["1", "2"]):
            for line in self.place.run("show", *runs, "--ndjson")[1].splitlines():
                self.assertIn(json.loads(line)["run"], (1, 2))

    def test_every_field_has_a_kind(self):
        """A value of the wrong kind is refused of each field; what the field has is found again."""
        for name, value in self.documents("runs")[0].items():
            code, out, err = self.place.run("runs", "--filter", f"{name}=@nothing", "--json")
            if isinstance(value, (int, float)):
                self.assertEqual((code, out), (2, ""), name)
                self.assertIn(1, [run["id"] for run in self.documents("runs", "--filter", f"{name}={json.dumps(value)}")], name)
            elif code != 0:
                self.assertEqual(json.loads(err)["error"]["code"], "invalid-filter", name)

    def test_what_changes_is_counted(self):
        self.assertEqual(self.place.run("edit", "1-2", "--untag", "nothere"), (0, "Nothing to change\n", ""))
        self.place.run("edit", "1", "--tag", "one")
        self.assertEqual(self.place.run("edit", "1-2", "--tag", "one")[1], "Changed 1 run\n")
        self.assertEqual(self.documents("show", "name=a")[0]["id"], 1)
        self.place.run("edit", "1", "--name", "a, b=c")
        self.assertEqual(self.documents("show", "a, b=c")[0]["id"], 1, "a name is a RUN, whatever is in it")
        self.place.run("edit", "1", "--name", "a")

    def test_documented_codes(self):
        source = pathlib.Path(__file__).resolve().parents[2]
        codes = {code for file in source.glob("app/**/*.cpp") for code in re.findall(r'code = "([a-z-]+[a-z])"', file.read_text())}
        documented = set(re.findall("`([a-z-]+)`", (source / "docs" / "command-line.md").read_text().split("`code` is one of")[1].split("\n\n")[0]))
        self.assertEqual(codes - documented, set())


class Files(Case):
    """Nothing that is there is overwritten unasked."""

    def test_a_file_that_is_there(self):
        path = self.place.path
        gate = ["record", "gate", "--command", f"{sys.executable} -c \"{PRINTS}\"", "--repeats", 1]
        for i, words in enumerate((["export", "1"], [*gate], ["record", "source", path / "speedruns" / "0.txt"], ["profile", "export", "1"])):
            file = path / f"there{i}.csv"
            file.write_text("mine")
            error = self.error(2, *words, "--out", file)
            self.assertEqual((error["code"], error["value"], error["hint"]), ("file-exists", str(file), "--force overwrites it"))
            self.assertEqual(file.read_text(), "mine")
            self.assertEqual(self.place.run(*words, "--out", file, "--force")[0], 0, words)
            file.write_text("")  # of mktemp
            self.assertEqual(self.place.run(*words, "--out", file)[0], 0, words)
            self.assertNotEqual(file.read_text(), "mine")
        self.assertEqual(self.place.run(*gate, "--write", path / "there1.csv")[0], 2, "the old spelling, too")
        self.assertEqual(self.place.run("export", "1", "--format", "csv", "--out", "/dev/null")[0], 0)


class WrongInput(Case):
    """Wrong inputs of every kind: each names its culprit in one line, with and without --json."""

    CASES = (  # status, words of the sentence, the command line
        (2, ["'runz' is not a command", "runs"], ["runz"]), (2, ["'---' is not an option"], ["runs", "---"]), (2, ["'--1'"], ["show", "--1"]),
        (2, ["it is an option of: train"], ["ladder", "--resume", "3"]), (2, ["it is an option of: train"], ["help", "--resume"]),
        (2, ["--filter needs a value"], ["runs", "--filter", "--json"]), (2, ["--name needs a value"], ["watch", "--name", "--", "true"]),
        (2, ["--resume needs a value"], ["resume"]), (2, ["--since: the value is empty"], ["runs", "--since", ""]),
        (2, ["--columns: the value is empty"], ["runs", "--columns", ""]), (2, ["--on: the value is empty"], ["train", "--on", ""]),
        (2, ["argument is empty"], ["get", "1", ""]), (2, ["argument is empty"], ["import", ""]), (2, ["argument is empty"], ["show", ""]),
        (1, ["no run -1"], ["show", "-1"]), (1, ["no run 1-"], ["show", "1-"]), (2, ["3-1 ends before it begins"], ["show", "3-1"]),
        (1, ["1-99", "only 1-"], ["show", "1-99"]), (1, ["no run ''"], ["show", "1,,2"]), (2, ["run: 'id='"], ["show", "id="]),
        (2, ["'1-2' names 2 runs"], ["compare", "1-2", "3"]),
        (2, ["closing bracket"], ["get", "1", "min(loss"]), (2, ["a condition is missing"], ["runs", "--filter", "id=1 or"]),
        (2, ["finished"], ["runs", "--filter", "status=finshed"]), (2, ["bracket"], ["runs", "--filter", "(id=1"]),
        (2, ["not a number"], ["runs", "--filter", "tokens_per_s>20k"]), (2, ["name?"], ["runs", "--columns", "id,nme"]),
        (2, ["span such as 7d"], ["runs", "--since", "7"]), (2, ["--limit", "at least 0"], ["runs", "--limit", "-3"]),
        (2, ["--limit takes one value"], ["runs", "--limit", "1", "--limit", "2"]), (2, ["'extra' was not expected"], ["runs", "extra", "words"]),
        (1, ["folder"], ["runs", "--db", "/"]), (1, ["typo.db does not exist"], ["doctor", "--db", "typo.db"]),
        (2, ["percentage"], ["compare", "1", "2", "--tolerance", "-1%"]), (2, ["itself"], ["compare", "1", "1"]),
        (2, ["--lower requires --metric"], ["compare", "1", "2", "--lower"]), (2, ["excludes"], ["edit", "1", "--pin", "--unpin"]),
        (1, ["cannot be started"], ["watch", "--", "nosuchprogram"]), (1, ["nofile does not exist"], ["record", "source", "nofile"]),
        (1, ["folder"], ["record", "diff", "/", "/"]), (2, ["--out is required"], ["export", "1"]),
        (2, ["5-3 ends before it begins"], ["runs", "--filter", "id=5-3"]), (2, ["0.5-0.1 ends before"], ["runs", "--filter", "loss_last=9,0.5-0.1"]),
        (2, ["rung 1 'bf16'", "batch must be at least 1"], ["ladder", "--stages", "bf16:batch=0"]),
        (2, ["rung 2 'x'", "heads must be at most"], ["ladder", "--stages", "bf16,x:heads=100000", "--dry-run"]),
        (2, ["--without: no rung is left"], ["ladder", "--stages", "bf16", "--without", "bf16"]), (2, ["write 1%"], ["compare", "1", "2", "--tolerance", "1"]),
        (2, ["write 1.5%"], ["compare", "1", "2", "--tolerance", "1.5"]), (2, ["--device: mps cannot be used"], ["train", "--device", "mps"]),
        (2, ["mps cannot be used"], ["ladder", "--device", "mps", "--dry-run"]), (2, ["device=mps"], ["sweep", "--over", "device=cpu,mps"]),
        (1, ["/nonexistent does not exist"], ["train", "--tokenizer", "/nonexistent"]), (1, ["neither a folder, a log nor a run"], ["record", "judge", "nofile"]),
        (2, ["isn't a sweep"], ["sweep", "show", "1"]), (1, ["nofile.json does not exist"], ["record", "gate", "--command", "echo", "--against", "nofile.json"]),
        (2, ["--format is needed"], ["export", "1", "--out", "-"]), (2, ["--format is needed"], ["export", "--ladder", "1", "-o", "-"]),
        (2, ["doesn't end in .png"], ["screenshot", "--view", "run", "-o", "x.txt"]), (2, ["--batch", "at least 1"], ["train", "--batch", "0"]),
        (2, ["--lr"], ["sweep", "--lr", "x"]), (2, ["--over is missing"], ["sweep"]), (2, ["'shw'", "show"], ["ladder", "shw"]),
        (2, ["'-x' is not an option"], ["machines", "add", "-x"]), (2, ["show"], ["sweep", "shwo"]), (2, ["x" * 20], ["x" * 5000]), (2, ["--xxx"], ["--" + "x" * 5000]),
        (2, ["not a command"], ["a\x1b[2Jb"]), (1, ["no run"], ["show", "a\x1b[31mb\x07"]), (2, ["is not an option"], ["-- "]), (2, ["'-'"], ["-"]),
        (2, ["--no-pager takes no value"], ["runs", "--no-pager=5"]), (2, ["--gate takes no value"], ["compare", "1", "2", "--gate=yes"]),
        (2, ["'nosuch' is not a command"], ["help", "nosuch"]),
        # Values that a field never has.
        *((2, ["--filter", word], ["runs", "--filter", term]) for term, word in (
            ("id=abc", "whole number"), ("steps!=abc", "whole number"), ("id=1-", "whole number"), ("id=1.5", "whole number"), ("id=1,x", "whole number"),
            ("exit_status=nan", "whole number"), ("id=1&&id=2", "whole number"), ("tokens_per_s!=abc", "number nor a range"), ("loss=abc", "number nor a range"),
            ("lr=abc", "number nor a range"), ("min(loss)=low", "number nor a range"), ("created_at=2026-13", "not a time"),
            ("created_at=2026-11-26T25:00", "not a time"), ("created_at>2026-02-30", "not a time"), ("created_at=2026-1", "not a time"),
            ("ended_at<2025-02-29", "not a time"), ("created_at=2026-11,2026-31", "not a time"), ("status~finshed", "finished"), ("trust~xyz", "trusted"),
            ("flags~xyz", "impossible-throughput"), ("id~a-b", "which no number contains"), ("created_at~May", "which no time contains"), ("name<3", "no order"),
            ("id=1 && id=2", "'&&' is not"), ("id=1 | id=2", "'|' is not"), ("id=1 || id=2", "'||' is not"))),
        *((2, ["neither a time", "span such as 7d"], ["runs", "--since", time])
          for time in ("2026-13-01", "2026-02-30", "0000-00-00", "2026-11-26T99:99", "2026-1", "2026-11-26T12:60")),
        (2, ["whole number"], ["show", "id=x"]),
        # Options that contradict each other, or would be ignored.
        (2, ["--over excludes --of"], ["sweep", "--of", "7", "--over", "lr=1,2"]), (2, ["--steps excludes --of"], ["sweep", "--of", "7", "--steps", "3"]),
        (2, ["--of excludes --repeats"], ["sweep", "--of", "7", "--repeats", "3"]), (2, ["sweep show doesn't take --over"], ["sweep", "--over", "lr=1,2", "show"]),
        (2, ["ladder show doesn't take --steps"], ["ladder", "--steps", "5", "show", "3"]), (2, ["doesn't take --rule"], ["record", "--rule", "x", "judge", "1"]),
        (2, ["profile list doesn't take --model"], ["profile", "--model", "small", "list"]), (2, ["try log doesn't take -m"], ["try", "-m", "x", "log"]),
        (2, ["excludes"], ["bin", "--limit", "5", "3"]), (2, ["excludes"], ["bin", "--empty", "--yes", "--limit", "1"]),
        (2, ["--untag: 'a' is also given to --tag"], ["edit", "1", "--tag", "a", "--untag", "a"]), (2, ["excludes"], ["show", "1", "--console", "--patch"]),
        (2, ["excludes"], ["show", "1", "--ndjson", "--metrics"]), (2, ["excludes"], ["show", "1", "--console", "--steps"]),
        (2, ["--limit", "--steps or --ndjson"], ["show", "1", "--limit", "5"]), (2, ["--limit", "--steps"], ["show", "1", "--metrics", "--limit", "2"]),
        (2, ["excludes"], ["mfu", "--params", "1000", "--gpu", "a100", "--peak-tflops", "100"]),
        (2, ["--max-repeats 3 is less than --repeats, 5"], ["record", "gate", "--command", "true", "--against", "true ", "--max-repeats", "3"]),
        # Lists with nothing, or the same, in an item.
        (2, ["'bf16' is there twice"], ["train", "--stage", "bf16,bf16"]), (2, ["'bf16' is there twice"], ["train", "--stage", "bf16", "--stage", "bf16"]),
        (2, ["'bf16,' has an empty item"], ["train", "--stage", "bf16,"]), (2, ["empty item"], ["sweep", "--stages=bf16,,tf32", "--over", "lr=1,2"]),
        (2, ["'1' is there twice"], ["ladder", "--seeds", "1,1"]), (2, ["'1,' has an empty item"], ["ladder", "--seeds", "1,"]),
        (2, ["1001 seeds", "at most 1000"], ["ladder", "--seeds", ",".join(map(str, range(1001)))]),
        # Names by which nothing could be found.
        *((2, ["--name", words], [*command, "--name", name]) for command in (["edit", "1"], ["train"], ["watch"], ["ladder"])
          for name, words in (("  ", "blank"), ("latest", "can't be a name"), ("3-5", "can't be a name"), ("12", "can't be a name"))),
        (2, ["',' has no tag"], ["edit", "1", "--tag", ","]), (2, ["has no tag"], ["edit", "1", "--untag", " "]),
        # The culprit, and why.
        (2, ["a machine's name has"], ["machines", "remove", "it's"]), (1, ["nofile does not exist"], ["follow", "nofile", "--once"]),
        (2, ["'x' is not a step", "RUN@STEP"], ["train", "--fork", "1@x"]), (2, ["'1@3' is not a run", "checkpoint"], ["train", "--resume", "1@3"]),
        (2, ["'1@3' is not a run"], ["show", "1@3"]), (2, ["'-x' is not an option"], ["import", "-x"]),
        (2, ["--limit", "at most"], ["runs", "--limit", "9" * 20]), (2, ["--limit", "must be a number, not 'abc'"], ["runs", "--limit", "abc"]),
        (2, ["--target", "must be a number"], ["compare", "1", "2", "--target", "abc"]), (2, ["--noise", "must be a number"], ["doctor", "--noise", "abc"]),
        (2, ["--scale", "must be a number"], ["screenshot", "--view", "run", "-o", "x.png", "--scale", "abc"]),
        (2, ["--target", "at most"], ["compare", "1", "2", "--target", "1e999"]), (2, ["--scale", "0.5 to 4"], ["screenshot", "--view", "run", "-o", "x.png", "--scale", "5"]),
        (2, ["FILE is required"], ["import"]), (2, ["RUN is required"], ["show"]), (2, ["FIELDS is required"], ["get", "1"]), (2, ["POOL is required"], ["record", "trade"]),
        (2, ["TRACE is required"], ["profile", "diff", "1"]),
        # What was meant.
        (2, ["did you mean --filter?", "runs"], ["--fliter", "x"]), (2, ["--metric", "did you mean loss?"], ["compare", "1", "2", "--metric", "los"]),
        (2, ["did you mean runs?"], ["RUNS"]), (2, ["did you mean --json?"], ["runs", "--JSON"]), (2, ["did you mean `ladder show`?"], ["ladders", "show"]),
        (2, ["did you mean `show`?"], ["runs", "show", "3"]), (2, ["did you mean `ladder show 3`?"], ["ladder", "3"]),
        (1, ["`stepladder ladder show`"], ["show", "ladder", "3"]), (2, ["did you mean gate?"], ["help", "record", "gat"]),
        (2, ["did you mean gate?"], ["record", "gat", "--help"]), (2, ["did you mean tokens_per_s?"], ["get", "1", "tokens_per_sec"]),
    )

    def test_each_names_its_culprit(self):
        for status, words, arguments in self.CASES:
            with self.subTest(str(arguments)[:80]):
                code, out, err = self.place.run(*arguments)
                if "--json" not in arguments:
                    self.assertEqual((code, out), (status, ""), err)
                    self.assertEqual(len(err.splitlines()), 1, err)
                    for word in words:
                        self.assertIn(word, err)
                    self.assertNotRegex(err, "[\x00-\x09\x0b-\x1f]")
                    self.assertLess(len(err), 1500)
                if "--" not in arguments:
                    self.error(status, *[word for word in arguments if word != "--json"])

    def test_old_words_lead_to_help(self):
        for old, now in (("resume", "train"), ("gate", "record gate"), ("ls", "runs"), ("continue", "unpause"), ("verify", "confirm"), ("claim", "record"),
                         ("profile operators", "operators")):
            self.assertEqual(self.place.run("help", *old.split()), self.place.run("help", *now.split()), old)
            self.assertEqual(self.place.run(*old.split(), "--help"), self.place.run(*now.split(), "--help"), old)


if __name__ == "__main__":
    unittest.main(verbosity=2)
