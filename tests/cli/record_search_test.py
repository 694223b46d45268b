"""`stepladder record gate`, alone and as the judge of `git bisect run`."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

from program import PATIENCE_S, PROGRAM, Workplace

COMMITS, CULPRIT, BROKEN = 16, 10, (7, 8)

# A log whose step times are the commit's, with the noise of the run: no clock of this machine is in it.
TRAIN = """
import os, pathlib, random, sys, time
step_ms = float(pathlib.Path("step_ms").read_text())
noise = random.Random(f"{os.environ['STEPLADDER_RUN']} {step_ms}")
step_ms *= noise.gauss(1, 0.01)
for step in range(1, 41):
    print(f"step:{step}/40 train_loss:{5 - step / 20:.4f} train_time:{step * step_ms:.3f}ms step_avg:{step_ms:.3f}ms", flush=True)
"""
# Different noise in each folder.
QUIET_TRAIN = TRAIN.replace("{step_ms}\")", "{os.getcwd()}\")").replace("0.01)", "0.002)", 1)


class Search(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.repository = self.place.path / "repository"
        self.repository.mkdir()
        self.place.environment.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)

    def tearDown(self):
        self.place.close()

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments],
                              cwd=self.repository, env=self.place.environment, check=True, text=True,
                              capture_output=True).stdout.strip()

    def test_git_bisect_runs_with_the_gate(self):
        """The recipe of docs/record.md."""
        self.git("init", "-q", "-b", "main")
        for i in range(COMMITS):
            (self.repository / "train.py").write_text("import no_such_module\n" if i in BROKEN else QUIET_TRAIN)
            (self.repository / "step_ms").write_text("105" if i >= CULPRIT else "100")
            (self.repository / "notes").write_text(f"commit {i}\n")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", f"Commit {i}")
        commits = self.git("rev-list", "--reverse", "HEAD").split()
        recipe = (pathlib.Path(__file__).parents[2] / "docs" / "record.md").read_text().split("git bisect run sh -c '")[1].split("'\n")[0]
        script = recipe.replace("stepladder", str(PROGRAM), 1).replace("python train.py --steps 200", "python3 train.py").replace("v1.0", commits[0])
        self.assertIn("train.py\n", script)
        self.git("bisect", "start", "main", commits[0])
        said = self.git("bisect", "run", "sh", "-c", script)
        self.assertIn(f"{commits[CULPRIT]} is the first bad commit", said)
        self.assertIn("git bisect skip", self.git("bisect", "log"))
        self.git("bisect", "reset")

    def logs(self, name, step_ms):
        folder = self.place.path / name
        folder.mkdir()
        noise = random.Random(name)
        for i in range(6):
            ms = step_ms * noise.gauss(1, 0.003)
            (folder / f"{i}.log").write_text("".join(
                f"step:{step}/40 train_loss:{5 - step / 20:.4f} train_time:{step * ms:.3f}ms step_avg:{ms:.3f}ms\n"
                for step in range(1, 41)))
        return folder

    def test_gate(self):
        baseline = self.place.path / "baseline.json"
        status, _, err = self.place.run("record", "gate", "--write", baseline, self.logs("before", 100))
        self.assertEqual(status, 0, err)
        written = json.loads(baseline.read_text())
        self.assertEqual((written["by"], len(written["values"])), ("throughput", 6))
        self.assertAlmostEqual(written["values"][0], 0.1, delta=0.005)

        def judge(*arguments):
            status, out, err = self.place.run("record", "gate", "--baseline", baseline, *arguments, "--json")
            return status, json.loads(out or "{}"), err
        for name, step_ms, code, answer in (("same", 100, 0, "passes"), ("faster", 80, 0, "passes"), ("slower", 110, 10, "slower")):
            status, judged, err = judge(self.logs(name, step_ms))
            self.assertEqual((status, judged["answer"]), (code, answer), (judged, err))
        self.assertAlmostEqual(judged["factor"], 100 / 110, delta=0.01)
        status, judged, _ = judge(self.place.path / "slower" / "0.log")
        self.assertEqual((status, judged["answer"], judged["ci95"]), (11, "cannot-tell", None))
        # A command is run until it is clear, or --max-runs.
        status, judged, err = judge("--command", f"cat {self.place.path}/same/$((STEPLADDER_RUN % 6)).log", "--runs", 3)
        self.assertEqual((status, judged["answer"]), (0, "passes"), err)
        self.assertGreaterEqual(judged["n"], 3)
        self.assertEqual(judge("--command", "exit 7")[0], 1)
        self.assertIn("exit status 7", judge("--command", "exit 7")[2])
        self.assertIn("--by wall", judge("--command", "echo")[2])
        self.gate_refuses(baseline, written, judge)

    def test_gate_measures_both_sides_in_turns(self):
        self.git("init", "-q", "-b", "main")
        folder = self.repository / "inner"
        folder.mkdir()
        (folder / "train.py").write_text(QUIET_TRAIN)
        for step_ms in (100, 103):
            (folder / "step_ms").write_text(str(step_ms))
            self.git("add", "-A")
            self.git("commit", "-q", "-m", f"{step_ms} ms")
        before = (self.git("status", "--porcelain"), self.git("worktree", "list"), self.git("rev-parse", "HEAD"))
        other = self.place.path / "other"
        shutil.copytree(folder, other)

        def gate(against, *command, more=()):
            done = subprocess.run([PROGRAM, "record", "gate", "--against", against, "--json", *more, "--", *command], cwd=folder,
                                  env=self.place.environment, text=True, capture_output=True, timeout=PATIENCE_S)
            return done.returncode, json.loads(done.stdout or "{}"), done.stderr
        train = ("python3", "train.py")
        for against, code, answer in (("HEAD~1", 10, "slower"), ("main", 0, "passes"), (str(other), 0, "passes"),
                                      (f"cd {other}; echo 90 >step_ms; python3 train.py", 10, "slower")):
            status, judged, err = gate(against, *train)
            self.assertEqual((status, judged["answer"]), (code, answer), (against, judged, err))
            self.assertEqual(judged["n"], judged["baseline_n"])
            self.assertIn(judged["n"], (5, 7, 10))
            self.assertLess(judged["ci95"][0], judged["ci95"][1])
        self.assertEqual(before, (self.git("status", "--porcelain"), self.git("worktree", "list"), self.git("rev-parse", "HEAD")))
        for against, command, code, said in (("nosuch", train, 2, "neither a folder nor a commit"), ("main", ("false",), 1, "exit status 1"),
                                             ("main", (), 2, "after --"), (str(self.place.path), train, 1, "of base failed")):
            status, _, err = gate(against, *command)
            self.assertEqual(status, code, err)
            self.assertIn(said, err)
        self.assertEqual(gate("main", *train, more=("--baseline", "x"))[0], 2)

    def test_a_metric_that_is_printed_once_is_judged(self):
        prints = "import random, sys; print('---'); print(f'{sys.argv[1]}:   {float(sys.argv[2]) + random.gauss(0, 1e-4):.6f}')"

        def gate(name, base, now, *more):
            side = lambda value: f"{sys.executable} -c \"{prints}\" {name} {value}"
            status, out, err = self.place.run("record", "gate", "--against", side(base), "--metric", name, *more, "--json", "--",
                                              sys.executable, "-c", prints, name, now)
            return status, json.loads(out or "{}"), err
        for name, base, now, more, code, answer in (
                ("val_bpb", 0.98, 0.98, ("--lower",), 0, "passes"), ("val_bpb", 0.98, 0.95, (), 0, "passes"),
                ("val_bpb", 0.98, 1.02, (), 10, "worse"), ("val_bpb", 0.98, 0.95, ("--higher",), 10, "worse"), ("acc", 0.7, 0.6, (), 10, "worse"), ("acc", 0.6, 0.7, (), 0, "passes"),
                ("karma", -5, -6, (), 10, "worse"), ("val_nll", 3, 2.9, (), 0, "passes")):
            status, judged, err = gate(name, base, now, *more)
            self.assertEqual("a higher karma counts as better" in err, name == "karma", err)
            self.assertEqual((status, judged.get("answer"), judged.get("metric")), (code, answer, name), err)
            self.assertAlmostEqual(judged["baseline_mean"], base, 3)
            self.assertLess(judged["ci95"][0], judged["ci95"][1])
        status, _, err = gate("val_bpb", 0.98, 0.98, "--lower", "--by", "loss")
        self.assertEqual(status, 2, err)
        status, _, err = self.place.run("record", "gate", "--against", "echo acc: 1", "--metric", "acc", "--", "echo", "loss: 3")
        self.assertEqual(status, 1)
        self.assertIn("has no acc", err)
        self.assertEqual(self.place.run("record", "gate", "--against", "x y", "--lower", "--", "true")[0], 2)

        # The same in a baseline's file, which keeps the question.
        baseline = self.place.path / "metric.json"
        command = f"{sys.executable} -c \"{prints}\" acc"
        self.assertEqual(self.place.run("record", "gate", "--write", baseline, "--metric", "acc", "--command", f"{command} 0.7")[0], 0)
        self.assertEqual(self.place.run("record", "gate", "--baseline", baseline, "--command", f"{command} 0.6")[0], 10)
        self.assertEqual(self.place.run("record", "gate", "--baseline", baseline, "--command", f"{command} 0.8")[0], 0)
        status, _, err = self.place.run("record", "gate", "--baseline", baseline, "--by", "loss", "--command", "true")
        self.assertEqual(status, 2)
        self.assertIn("--metric acc", err)

    def gate_refuses(self, baseline, written, judge):
        for values, said in (([0.0], "gives 0"), ([-1.0, 0.1], "gives -1"), ([0.1, 1e308], "gives 1e+308"), ([1e-300], "gives 1e-300"),
                             ([], "isn't a baseline"), (["1"], "isn't a baseline")):
            baseline.write_text(json.dumps(written | {"values": values}))
            status, _, err = self.place.run("record", "gate", "--baseline", baseline, "--command", "exit 7")
            self.assertEqual(status, 1, err)
            self.assertIn(str(baseline), err)
            self.assertIn(said, err)
        for value in ("NaN", "Infinity", "-Infinity", "1e999", "null"):
            baseline.write_text(json.dumps(written | {"values": [1]}).replace('"values": [1]', f'"values": [{value}]'))
            status, _, err = self.place.run("record", "gate", "--baseline", baseline, "--command", "exit 7")
            self.assertEqual(status, 1, err)
            self.assertIn("isn't a baseline", err)
        for deep in ("[" * 10**6, '{"machine":' * 10**6, json.dumps(written).replace('"machine": {', '"machine": {"x": ' + "[" * 10**5 + "]" * 10**5 + ", ")):
            baseline.write_text(deep)
            status, _, err = self.place.run("record", "gate", "--baseline", baseline, "--command", "exit 7")
            self.assertEqual(status, 1, err[-500:])
            self.assertIn("isn't a baseline", err)
        never = self.place.path / "never.json"
        status, _, err = self.place.run("record", "gate", "--write", never, "--by", "loss", "--runs", 1, "--command",
                                        "echo 'step:1/1 val_loss:0.0 train_time:1ms step_avg:1.0ms'")
        self.assertEqual((status, never.exists()), (1, False), err)
        self.assertIn("gives 0", err)
        for option, value in (("--tolerance", "nan"), ("--tolerance", "-1"), ("--tolerance", "1e308"), ("--runs", "0"), ("--runs", "-1"),
                              ("--max-runs", "nan")):
            self.assertEqual(self.place.run("record", "gate", "--baseline", never, self.place.path, option, value)[0], 2)

        written["machine"]["cpu"] = "Another CPU"
        baseline.write_text(json.dumps(written))
        status, judged, _ = judge("--command", "exit 7")  # not even run
        self.assertEqual((status, judged["answer"], judged["factor"]), (14, "other-machine", None))
        self.assertIn('instead of "Another CPU"', judged["reason"])
        baseline.write_text("{}")
        for arguments, code, said in ((("--baseline", baseline, self.place.path), 1, "isn't a baseline"),
                                      (("--baseline", self.place.path / "none", self.place.path), 1, "--out"),
                                      ((self.place.path,), 2, "--against FILE"),
                                      (("--write", self.place.database, "--command", "x"), 2, "database"),
                                      (("--write", baseline), 2, "--command")):
            status, _, err = self.place.run("record", "gate", *arguments)
            self.assertEqual(status, code, (arguments, err))
            self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main()
