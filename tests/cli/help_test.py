"""Help, completion, the manual page, SKILL.md, and what is said of a wrong command line, as text and as JSON."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from program import PROGRAM, Workplace

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = "".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms | tok/sec 40960\n" for i in range(1, 31))


def commands(of):
    for command in of["commands"]:
        yield command
        yield from commands(command)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Workplace()
        cls.addClassCleanup(cls.place.close)
        for name in ("one", "two"):
            (cls.place.path / f"{name}.log").write_text(STEPS)
            cls.place.json("import", "--again", cls.place.path / f"{name}.log")

    def refused(self, status, words, *arguments):
        """One sentence on stderr with all the words, also in the one line of JSON; returns its parts."""
        code, out, err = self.place.run(*arguments)
        self.assertEqual((code, out), (status, ""), f"{arguments}: {err}")
        for word in words:
            self.assertIn(word, err)
        self.assertNotRegex(err, "Could not convert|Excludes|TEXT missing|not in {")
        code, out, err = self.place.run("--json", *arguments)
        self.assertEqual((code, out), (status, ""), f"{arguments}: {err}")
        line, = err.splitlines()
        error = json.loads(line)["error"]
        self.assertEqual(set(error), {"code", "argument", "value", "message", "hint"})
        for key in ("code", "message"):
            self.assertTrue(error[key], error)
        return error


class WrongWords(Case):
    def test_the_wrong_command_is_named(self):
        for wrong, meant in (("compar", "compare"), ("exprt", "export"), ("laddr", "ladder"), ("swep", "sweep")):
            error = self.refused(2, [f"'{wrong}' is not a command", f"did you mean {meant}?"], wrong, "2", "3")
            self.assertEqual((error["code"], error["value"]), ("unknown-command", wrong))
        self.refused(2, ["'frobnicate' is not a command"], "frobnicate", "--help")
        self.refused(2, ["'chek' is not a command of `stepladder machines`", "did you mean check?"], "machines", "chek")
        self.refused(2, ["'lst' is not a command of `stepladder profile`", "did you mean list?"], "profile", "lst")

    def test_the_wrong_option_is_named(self):
        for command, wrong, meant in (("runs", "--fliter", "--filter"), ("train", "--step", "--steps"), ("runs", "--jsn", "--json"),
                                      ("compare", "--gat", "--gate"), ("export", "--laddr", "--ladder"), ("show", "--no-pagr", "--no-pager")):
            error = self.refused(2, [f"'{wrong}' is not an option", f"did you mean {meant}?"], command, wrong, "5")
            self.assertEqual((error["code"], error["argument"]), ("unknown-option", wrong))
        self.refused(2, ["'-x' is not an option"], "export", "1", "-x", "y")
        self.assertEqual(self.refused(2, ["'3' was not expected"], "get", "1", "id", "3", "4")["value"], "3")

    def test_the_wrong_value_is_named(self):
        for arguments, words in ((["ladder", "--seeds", "a,b"], ["--seeds", "whole number", "'a'"]),
                                 (["ladder", "--repeats", "2.5"], ["--repeats", "whole number", "'2.5'"]),
                                 (["train", "--batch", "999999999999"], ["--batch", "at most"]),
                                 (["train", "--batch", "-999999999999"], ["--batch", "at least"]),
                                 (["profile", "passes", "x"], ["whole number", "'x'"]),
                                 (["profile", "time", "--precision", "fp23"], ["--precision", "did you mean fp32?"]),
                                 (["profile", "time", "--device", "gpu"], ["--device", "auto, cpu, cuda, mps"]),
                                 (["import", "x", "--format", "jurnal"], ["--format", "did you mean"]),
                                 (["screenshot", "--view", "run", "--theme", "drak", "-o", "x.png"], ["did you mean dark?"]),
                                 (["compare", "1", "2", "--tolerance", "lots"], ["--tolerance", "percentage", "'lots'"])):
            error = self.refused(2, words, *arguments)
            self.assertEqual(error["code"], "invalid-value", error)
            self.assertTrue(error["argument"], error)

    def test_missing_and_doubled_options(self):
        self.assertEqual(self.refused(2, ["--out is required"], "export", "1")["argument"], "--out")
        self.assertEqual(self.refused(2, ["--name needs a value"], "train", "--name")["code"], "missing-value")
        self.assertEqual(self.refused(2, ["--name takes one value"], "train", "--name", "a", "--name", "b")["code"], "repeated-option")
        self.assertEqual(self.refused(2, ["excludes"], "ladder", "--stages", "bf16", "--preset", "a100")["code"], "conflicting-options")
        self.assertIn("git bisect run", self.refused(2, [], "record", "bisect", "v1", "main", "--out", "x", "--", "true")["hint"])

    def test_what_is_not_there_is_1(self):
        missing = self.place.path / "missing"
        for arguments, code in ((["show", "999"], "no-such-run"), (["compare", "1", "999"], "no-such-run"),
                                (["check", "nobody"], "no-such-run"), (["pause", "999"], "no-such-run"),
                                (["bin", "999"], "no-such-run"), (["export", "999", "-o", "x.csv"], "no-such-run"),
                                (["export", "--ladder", "9", "-o", "x.csv"], "no-such-ladder"),
                                (["profile", "show", "9"], "no-such-trace"), (["machines", "check", "box"], "no-such-machine"),
                                (["record", "judge", "1", "--rule", "nope"], "not-found"), (["watch", "--follow", missing], "not-found"),
                                ([f"{missing}.stepladder"], "not-found"), (["ladder", "--preset", "nope"], "not-found")):
            error = self.refused(1, [], *arguments)
            self.assertEqual(error["code"], code, f"{arguments}: {error}")

    def test_every_command_has_errors_as_json(self):
        for command in commands(self.place.json("help")):
            code, out, err = self.place.run(*command["name"].split(), "--frobnicate", "--json")
            self.assertEqual((code, out), (2, ""), command["name"])
            self.assertEqual(json.loads(err)["error"]["argument"], "--frobnicate")


class OldSpellings(Case):
    def test_commands(self):
        self.assertEqual(self.place.run("ls")[1], self.place.run("runs")[1])
        for old, now in (("machines list", "machines"), ("bin list", "bin"), ("ladder list", "ladders"), ("bin empty", "bin --empty"),
                         ("resume ladder 9", "ladder --continue 9")):
            self.assertEqual(self.place.run(*old.split()), self.place.run(*now.split()), old)
        self.assertEqual(self.place.run("list")[1], self.place.run("runs")[1])
        self.assertEqual(self.place.run("gate", "--help")[1], self.place.run("record", "gate", "--help")[1])
        self.assertEqual(self.place.run("verify", "--help")[1], self.place.run("confirm", "--help")[1])
        for old in ("continue", "unpause"):
            self.refused(2, ["run 1 is finished"], old, "1")
        for words in (("record", "1"), ("record", "judge", "1")):
            self.assertIn(self.place.run(*words)[0], (0, 11, 12, 13), words)

    def test_options(self):
        same = [("compare", 1, 2, "--tolerance", "1%"), ("compare", 1, 2, "--noise-floor", "0.01"), ("compare", 1, 2, "--tolerance", "0.01")]
        self.assertEqual(len({self.place.run(*words)[1] for words in same}), 1)
        for option in ("-o", "--out", "--output"):
            self.assertEqual(self.place.run("export", 1, "--format", "csv", option, "-")[0], 0)
        # An old spelling stays the user's in an error.
        self.refused(2, ["--noise-floor: "], "compare", 1, 2, "--noise-floor", "x")


class Help(Case):
    def test_every_command_teaches(self):
        everything = self.place.json("help")
        names = [command["name"] for command in commands(everything)]
        for needed in ("ladder", "record gate", "profile time", "completion", "skill", "help", "machines add"):
            self.assertIn(needed, names)
        for command in commands(everything):
            self.assertGreaterEqual(len(command["examples"]), 2, command["name"])
            code, out, _ = self.place.run("help", *command["name"].split())
            self.assertEqual(code, 0)
            self.assertEqual(out, self.place.run(*command["name"].split(), "--help")[1])
            self.assertIn("Examples\n  stepladder ", out)
            self.assertIn("Exit status", out)
            self.assertNotRegex(out, r"TEXT:TEXT|\{false\}|Excludes|UINT|FLOAT")
            for example in command["examples"]:
                self.assertNotIn("\t", example["command"])
        for command in everything["commands"]:
            self.assertTrue(command["group"], command["name"])

    def test_no_command_is_left_out_of_the_table(self):
        listed = {command["name"] for command in commands(self.place.json("help"))}
        offered = {line.split("\t")[0] for line in self.place.run("complete", "--", "")[1].splitlines()}
        self.assertEqual(offered - {":files"}, {name for name in listed if " " not in name})
        for source in (ROOT / "app" / "cli").rglob("*.cpp"):
            for name in re.findall(r'add_with_json\(app, common,\s*"([a-z-]+)"', source.read_text()):
                if name not in ("version", "complete"):
                    self.assertIn(name, {word for each in listed for word in each.split()}, source)

    def test_examples_are_command_lines_that_parse(self):
        for command in commands(self.place.json("help")):
            for example in command["examples"]:
                words = re.split(r" [|<>] ", example["command"])[0]
                checked = subprocess.run(["bash", "-c", words.replace("stepladder", '"$0"', 1) + " --frobnicate" if " -- " not in words
                                          else words.replace("stepladder", '"$0"', 1).replace(" -- ", " --frobnicate -- ", 1), PROGRAM],
                                         env=self.place.environment, capture_output=True, text=True, cwd=self.place.path)
                self.assertEqual(checked.returncode, 2, example)
                self.assertIn("'--frobnicate' is not an option", checked.stderr, example)

    def test_defaults_and_types(self):
        out = self.place.run("train", "--help")[1]
        self.assertRegex(out, r"--batch N +Sequences per micro-batch \(B\) \(default 12\)")
        self.assertRegex(out, r"--lr X ")
        self.assertIn("--device auto|cpu|cuda|mps", out)
        self.assertIn("(1 to 1000)", self.place.run("ladder", "--help")[1])

    def test_top_level(self):
        out = self.place.run("--help")[1]
        self.assertEqual(self.place.run("help")[1], out)
        place = [out.index(f"\n{group}\n") for group in ("Measure", "Judge", "Take in", "Runs", "Why", "Records", "Hand out", "Set up")]
        self.assertEqual(place, sorted(place))
        self.assertEqual(json.loads(self.place.run("--version", "--json")[1]), self.place.json("version"))
        version = self.place.run("--version")[1]
        self.assertEqual({version, self.place.run("-V")[1], self.place.run("version")[1]}, {version})

    def test_values_have_names(self):
        for command in commands(self.place.json("help")):
            for option in command["options"]:
                if option["name"] not in ("--message", "--note", "--sample-prompt"):
                    self.assertNotEqual(option["value"], "TEXT", (command["name"], option["name"]))
            for option in ("--json", "-h, --help"):
                self.assertEqual(len(re.findall(f"^  {option}", self.place.run(*command["name"].split(), "--help")[1], re.M)), 1, command["name"])
        self.assertIn("--runs N", self.place.run("try", "end", "--help")[1])
        shown = self.place.run("train", "--help")[1]
        for option in ("eval-every", "save-every", "clip", "lr-warmup", "threads"):
            self.assertRegex(shown, f"--{option} [NX] .*(\\n {{10}}.*)?default [0-9]", option)
        self.assertRegex(shown, r'--sample-prompt TEXT +Prompt for text samples \(default "\\n"\)')
        self.assertNotIn("best verdict", self.place.run("ladders", "--help")[1])
        self.assertIn("minutes", self.place.run("profile", "--help")[1].split("Usage")[0])

    def test_the_manual_page(self):
        code, page, _ = self.place.run("help", "--format", "man")
        self.assertEqual(code, 0)
        self.assertTrue(page.startswith(".TH STEPLADDER 1"))
        for command in ("ladder", "record gate", "compare"):
            self.assertIn(f'.SS "stepladder {command}', page)
        if shutil.which("man"):
            with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
                file.write(page)
                file.flush()
                shown = subprocess.run(["man", "-l", file.name], env={**os.environ, "MANWIDTH": "80", "PAGER": "cat"}, capture_output=True, text=True)
                if shown.returncode == 0:
                    self.assertIn("--interleave", re.sub(".\b", "", shown.stdout))

    def test_the_docs_table_is_this_table(self):
        table = self.place.run("help", "--format", "md")[1]
        self.assertIn(table, (ROOT / "docs" / "command-line.md").read_text())

    def test_skill(self):
        text = self.place.run("skill")[1]
        self.assertEqual(text, (ROOT / "SKILL.md").read_text())
        self.assertTrue(text.startswith("---\nname: stepladder\n"))
        known = {}
        for command in commands(self.place.json("help")):
            known[command["name"]] = {option["name"] for option in command["options"]}
        common = {option["name"] for option in self.place.json("help")["options"]}
        lines = [line.split("#")[0] for line in text.splitlines() if line.startswith("    stepladder ")]
        self.assertGreater(len(lines), 10)
        for line in lines:
            words = line.split(" -- ")[0].split()[1:]
            name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
            self.assertIn(name, known, line)
            for option in re.findall(r"(?<= )--[a-z-]+", line.split(" -- ")[0]):
                self.assertIn(option, known[name] | common, line)


class Completion(Case):
    def offered(self, *words):
        code, out, err = self.place.run("complete", "--", *words)
        self.assertEqual((code, err), (0, ""))
        return [line.split("\t")[0] for line in out.splitlines()]

    def test_what_is_offered(self):
        self.assertIn("compare", self.offered(""))
        self.assertIn("gate", self.offered("record", ""))
        self.assertIn("--filter", self.offered("runs", "--"))
        self.assertIn("--db", self.offered("runs", "--"))
        self.assertEqual(self.offered("show", "")[:3], ["2", "1", "latest"])
        self.assertEqual(self.offered("compare", "1", "")[:2], ["2", "1"])
        self.assertEqual(self.offered("screenshot", "--theme", ""), ["dark", "light"])
        self.assertEqual(self.offered("train", "--device", ""), ["auto", "cpu", "cuda", "mps"])
        self.assertIn(":files", self.offered("import", ""))
        for words, some in ((["train", "--model"], ["nano", "gpt2"]), (["ladder", "--stages"], ["bf16", "compile"]), (["train", "--stage"], ["bf16"]),
                            (["ladder", "--preset"], ["a100"]), (["export", "1", "--format"], ["csv", "png"]), (["runs", "--columns"], ["tokens_per_s"]),
                            (["runs", "--sort"], ["id", "mfu"]), (["get", "1"], ["tokens_per_s", "loss_last"]), (["help"], ["compare", "record"]),
                            (["help", "record"], ["gate"]), (["screenshot", "--view"], ["ladder", "history"]), (["record", "judge", "x", "--rule"], ["modded-nanogpt-1"]),
                            (["mfu", "--gpu"], ["A100 80GB SXM"][:0])):
            offered = self.offered(*words, "")
            for each in some:
                self.assertIn(each, offered, words)
        self.assertNotIn("1", self.offered("get", "1", ""))
        self.place.run("bin", "1")
        self.assertEqual(self.offered("restore", ""), ["1"])
        self.assertEqual(self.offered("bin", "--restore", ""), ["1"])
        self.assertNotIn("1", self.offered("show", ""))
        self.place.run("restore", "1")
        self.place.json("machines", "add", "box", "--local")
        self.assertEqual(self.offered("machines", "check", ""), ["box"])
        self.assertEqual(self.offered("--db", "/nowhere.db", "show", ""), [])

    def test_bash_completes(self):
        script = self.place.run("completion", "bash")[1]
        line = script + 'COMP_WORDS=("$0" sho); COMP_CWORD=1; _stepladder; echo "${COMPREPLY[@]}"; ' \
                        'COMP_WORDS=("$0" show ""); COMP_CWORD=2; _stepladder; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", line, PROGRAM], env=self.place.environment, capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(), ["show", "2 1 latest"], done.stderr)

    def test_other_shells(self):
        for shell, word in (("zsh", "#compdef stepladder"), ("fish", "complete -c stepladder")):
            script = self.place.run("completion", shell)[1]
            self.assertIn(word, script)
            if shutil.which(shell):
                self.assertEqual(subprocess.run([shell, "-n", "-c", script]).returncode, 0)
        self.refused(2, ["did you mean bash?"], "completion", "bsh")


class Keys(Case):
    def test_import_always_has_the_same_keys(self):
        good = self.place.path / "three.log"
        good.write_text(STEPS.replace("5", "6"))
        keys = {"runs", "notes", "skipped", "errors", "groupings", "traces", "passes", "dry_run"}
        code, out, _ = self.place.run("import", "nofile", good, "--json")
        self.assertEqual(code, 1)
        outcome = json.loads(out)
        self.assertEqual(set(outcome), keys)
        self.assertEqual(len(outcome["runs"]), 1)
        self.assertIn("nofile", outcome["errors"][0])
        again = self.place.json("import", good)
        self.assertEqual((set(again), len(again["skipped"])), (keys, 1))

    def test_export_and_screenshot_say_what_they_wrote(self):
        out = self.place.path / "x.csv"
        written = self.place.json("export", 1, 2, "-o", out)
        self.assertEqual((written["file"], written["format"], written["runs"]), (str(out), "csv", [1, 2]))
        self.refused(2, ["end in .png"], "screenshot", "--view", "run", "-o", self.place.path / "x.txt")

    def test_steps_one_a_line(self):
        code, out, _ = self.place.run("show", 1, "--ndjson", "--limit", 5)
        self.assertEqual(code, 0)
        self.assertEqual([json.loads(line)["step"] for line in out.splitlines()], [26, 27, 28, 29, 30])
        self.assertEqual(len(self.place.json("show", 1, "--steps", "--limit", 3)["data"]), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
