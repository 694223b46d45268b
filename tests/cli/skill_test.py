"""A program that knows Stepladder by SKILL.md alone: it takes its command lines out of that page, fills in what stands for a value, and runs them
all in a project of its own. A line that doesn't work, or doesn't print the fields that its comment names, fails here."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from program import PATIENCE_S, PROGRAM, SMALLEST, Workplace

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "SKILL.md").read_text()
TRAIN = """
import os, random
noise = random.Random(os.urandom(8))
for step in range(1, 41):
    print(f"step {step} | loss {5 - step / 20:.4f} | dt {100 + noise.gauss(0, 0.2):.3f}ms | tok/sec 20480", flush=True)
print(f"val_bpb: {0.99 + noise.gauss(0, 0.001):.6f}")
"""


def lines_of(page):
    """The command lines of the page with their comments, in order; a comment on a line of its own belongs to the line before."""
    found = []
    for line in page.splitlines():
        if line.startswith("    #"):
            found[-1][1] += line.strip()
        elif line.startswith("    "):
            command, _, comment = line.strip().partition(" #")
            first, *others = command.split("; stepladder ")
            found += [[each.strip(), "#" + comment] for each in (first, *(f"stepladder {other}" for other in others))]
    return found


def fields_named(comment):
    """(list, names) for a comment such as "# .rungs[]: stage, loss.verdict" or "# id, available, reason"; names of what isn't one are left out."""
    of, text = "", comment.strip("# ").split("; ")[0]
    if named := re.match(r"\.(\w+)\[\]: ", text):
        of, text = named[1], text[named.end():]
    text = re.sub(r"\[\{.*?\}\]|\([^)]*\)", "", text).split(":")[0]
    names = [name.strip() for name in text.split(",")]
    return of, names if len(names) > 1 and all(re.fullmatch(r"[a-z_0-9]+(\.[a-z_]+)?", name) for name in names) else []


@unittest.skipUnless((PROGRAM.parent / "libstepladder_trainer.so").exists(), "this build doesn't train")
class Skill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Workplace()
        cls.addClassCleanup(cls.place.close)
        cls.work = cls.place.path / "work"
        programs = cls.place.path / "programs"
        for folder in (cls.work, programs, cls.work / "store", cls.work / "one", cls.work / "two"):
            folder.mkdir()
        for name, target in (("stepladder", PROGRAM), ("python", sys.executable)):
            (programs / name).write_text(f'#!/bin/sh\nexec "{target}" "$@"\n')
            (programs / name).chmod(0o755)
        cls.place.environment.update(PATH=f"{programs}:{os.environ['PATH']}", GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull,
                                     HOME=str(cls.place.path), STEPLADDER_DB=str(cls.place.path / "my.db"))
        (cls.work / "train.py").write_text(TRAIN)
        cls.log = "".join(f"step {k} | loss {5 - k / 100:.3f} | dt 100.{k % 3}ms | tok/sec 20480\n" for k in range(1, 41))
        (cls.work / "train.log").write_text(cls.log)
        (cls.work / "store" / "run.csv").write_text("step,loss\n" + "".join(f"{k},{3 - k / 100}\n" for k in range(1, 20)))
        for i, folder in enumerate(("one", "two")):  # two ladders, so that the one below is the third
            for name in "ab":
                (cls.work / folder / f"{name}{i}.log").write_text(cls.log.replace("loss 4", f"loss 3.{i}"))
            cls.shell(f"stepladder import --flat {folder}")
        (cls.work / "evaluate.py").write_text("")
        cls.shell("git init -q -b main && git add train.py evaluate.py && git -c user.name=A -c user.email=a@example.org commit -q -m one")

    @classmethod
    def shell(cls, line):
        return subprocess.run(["bash", "-c", line], cwd=cls.work, env=cls.place.environment, capture_output=True, text=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL)

    def filled_in(self, line):
        """The line with values for what stands for one, of a size for a test."""
        launched = [each["id"] for each in self.place.json("ladders") if each["source"] == "launched"]
        rungs = self.place.json("ladder", "show", launched[-1])["rungs"] if launched else [{"runs": [1]}, {"runs": [2]}]
        base, run = rungs[0]["runs"][0], rungs[1]["runs"][0]
        for word, value in (("RUN...", run), ("RUN", run), ("BASE", base), ("DIR", "store")):
            line = re.sub(rf"\b{re.escape(word)}(?!\w)", str(value), line)
        line = re.sub(r"^stepladder (ladder) --stages", f"stepladder \\1 {' '.join(SMALLEST)} --stages", line)
        return line.replace("stepladder confirm", "stepladder confirm --patience 0")

    def test_every_line_does_what_it_says(self):
        lines = lines_of(PAGE)
        self.assertGreater(len(lines), 20)
        for line, comment in lines:
            with self.subTest(line):
                if "try -m" in line:
                    (self.work / "train.py").write_text(TRAIN + "# changed\n")
                done = self.shell(self.filled_in(line))
                self.assertIn(done.returncode, (0, 10, 11, 12, 13), done.stderr)
                printed = (self.work / line.split(">")[1].strip()).read_text() if ">ladder.json" in line else done.stdout
                if "--json" not in line:
                    if "--ndjson" in line:
                        self.assertTrue(all("step" in json.loads(each) for each in printed.splitlines()))
                    continue
                of, names = fields_named(comment)
                document = json.loads(printed)
                items = document[of] if of else document if isinstance(document, list) else [document]
                self.assertTrue(items, line)
                for name in names:
                    for item in items:
                        for key in name.split("."):
                            self.assertIn(key, item, f"{line}: {name}")
                            item = item[key]

    def test_errors_are_as_the_page_has_them(self):
        keys = re.search(r'`\{"error": \{(.*?)\}\}`', PAGE)[1]
        done = self.shell("stepladder show 999 --json")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(set(json.loads(done.stderr)["error"]), set(re.findall(r'"(\w+)"', keys)))
        self.assertEqual(self.shell("stepladder show --frobnicate --json").returncode, 2)
        self.assertEqual(self.shell("stepladder --db typo.db runs").returncode, 1, "rule 1")
        self.assertEqual(self.shell("stepladder").returncode, 2)
        statuses = {int(number) for number in re.findall(r"(?<![\w.-])(\d+) (?=[a-z])", PAGE.split("## Exit status")[1].split("\n`compare`")[0])}
        self.assertEqual(statuses, {0, 1, 2, 10, 11, 12, 13, 14, 130})

    def test_every_word_in_backticks_is_one(self):
        """Options and command lines within sentences exist."""
        def every(of):
            for command in of["commands"]:
                yield command
                yield from every(command)

        known = {each["name"]: {option["name"] for option in each["options"]} for each in every(self.place.json("help"))}
        options = set().union(*known.values()) | {option["name"] for option in self.place.json("help")["options"]}
        for text in re.findall(r"`([^`\n]+)`", re.sub(r"(?m)^    .*$", "", PAGE)):
            words = text.split()
            for option in re.findall(r"(?:^| )(--[a-z-]+)", text):
                self.assertIn(option, options, text)
            if words[0] in known and len(words) > 1 and not words[1].startswith("-") and " ".join(words[:2]) not in known:
                done = self.shell(f"stepladder {words[0]} --help")
                self.assertEqual(done.returncode, 0, text)

    def test_journeys(self):
        """Those of a day's work, each by lines of the page."""
        def by(start, **values):
            line = next(line for line, _ in lines_of(PAGE) if line.removeprefix("stepladder ").startswith(start))
            for word, value in values.items():
                line = line.replace(word + "...", str(value)).replace(word, str(value))
            return self.shell(self.filled_in(line))

        def document(done, *statuses):
            self.assertIn(done.returncode, statuses or (0,), done.stderr)
            return json.loads(done.stdout)

        by("ladder --stages")                                                     # launch three rungs, three times each
        ladder = json.loads((self.work / "ladder.json").read_text())
        self.assertEqual([len(rung["runs"]) for rung in ladder["rungs"]], [3, 3, 3])
        again = document(self.shell("stepladder ladder show --json"))             # see it again
        self.assertEqual(again["rungs"], ladder["rungs"])
        for rung in again["rungs"]:                                               # which speed-up is real
            self.assertLessEqual({"verdict", "trust", "loss", "ci95"}, set(rung))
        (base, *_), (run, *_) = again["rungs"][0]["runs"], again["rungs"][1]["runs"]
        self.assertIn(document(by("confirm", RUN=run), 0, 10, 11, 12)["verdict"], ("faster", "same", "slower", "cannot-tell"))
        found = document(by("runs --filter 'status"))                             # since last week, by configuration
        self.assertIsInstance(found, list)
        (self.work / "report.html").unlink(missing_ok=True)
        self.assertEqual(document(by("export --ladder latest"))["format"], "html")  # a figure
        self.assertEqual(by("export --ladder latest").returncode, 2, "it is there already")
        self.assertEqual(document(by("compare", BASE=base, RUN=run), 0, 10, 11, 12, 13)["base"], base)
        value = self.shell(next(line for line, _ in lines_of(PAGE) if line.startswith("x=$(")).replace("RUN", str(run)) + "; echo $x")
        self.assertGreater(float(value.stdout), 0)                                # one number in a variable
        for command, key in (("delete", "deleted"), ("restore", "restored")):     # delete and restore three
            self.assertEqual(document(self.shell(f"stepladder {command} 1-3 --json")), {key: [1, 2, 3]})
        trained = document(self.shell(f"stepladder train {' '.join(SMALLEST)} --steps 20 --save-every 10 --json"))
        resumed = document(self.shell("stepladder train --resume latest --steps 30 --json"))
        self.assertEqual((resumed["id"], resumed["last_step"]), (trained["id"], 30))  # resume
        (self.work / "base.json").unlink(missing_ok=True)
        self.assertEqual(by("record gate --command 'python train.py' --out base.json").returncode, 0)
        self.assertIn(document(by("record gate --command 'python train.py' --against base.json"), 0, 10, 11)["verdict"],
                      ("passes", "slower", "cannot-tell"))                        # a gate for CI


if __name__ == "__main__":
    unittest.main(verbosity=2)
