"""`stepladder record bisect` over a made-up repository, and `record gate`."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from program import PATIENCE_S, PROGRAM, Workplace

COMMITS, CULPRIT = 32, 21

# A log whose step times are the commit's, with the noise of the run: no clock of this machine is in it.
TRAIN = """
import os, pathlib, random, sys, time
step_ms = float(pathlib.Path("step_ms").read_text())
noise = random.Random(f"{os.environ['STEPLADDER_RUN']} {step_ms}")
step_ms *= noise.gauss(1, 0.01)
wait_for = sys.argv[1] if len(sys.argv) > 1 else "-"
for step in range(1, 41):
    print(f"step:{step}/40 train_loss:{5 - step / 20:.4f} train_time:{step * step_ms:.3f}ms step_avg:{step_ms:.3f}ms", flush=True)
    if step == 20 and os.environ["STEPLADDER_RUN"] == "9":
        while wait_for != "-" and not os.path.exists(wait_for):
            time.sleep(0.01)
"""


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

    def make_commits(self):
        self.git("init", "-q", "-b", "main")
        (self.repository / "train.py").write_text(TRAIN)
        for i in range(COMMITS):
            (self.repository / "step_ms").write_text("105" if i >= CULPRIT else "100")
            (self.repository / "notes").write_text(f"commit {i}\n")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", f"Commit {i}")
        return self.git("rev-list", "--reverse", "HEAD").split()

    def test_bisect_finds_the_slow_commit(self):
        commits = self.make_commits()
        (self.repository / "notes").write_text("not committed")
        before = (self.git("status", "--porcelain"), self.git("worktree", "list"), self.git("rev-parse", "HEAD"))
        folder, gate = self.place.path / "search", self.place.path / "gate"
        asked = ("--folder", folder, "--repository", self.repository, commits[0], "main", "--", "python3", "train.py", gate)
        search = self.place.start("record", "bisect", *asked)
        end = time.time() + PATIENCE_S
        log = lambda: next(iter((folder / "runs").glob("0009-*.log")), None)
        while not (log() and "step:20/40" in log().read_text()):
            self.assertLess(time.time(), end)
            time.sleep(0.02)
        search.send_signal(signal.SIGKILL)
        search.communicate()
        measured = sorted(it.name for it in (folder / "runs").iterdir())
        gate.touch()

        status, out, err = self.place.run("record", "bisect", "--folder", folder, "--json")
        answer = json.loads(out)
        self.assertEqual((status, answer["verdict"]), (0, "found"), err)
        self.assertEqual(answer["found"]["commit"], commits[CULPRIT])
        self.assertEqual(answer["found"]["subject"], f"Commit {CULPRIT}")
        low, high = answer["found"]["ci95"]
        self.assertTrue(1.02 < low < answer["found"]["change"] < high < 1.08, answer["found"])
        runs = sorted(it.name for it in (folder / "runs").iterdir())
        self.assertEqual(runs[:len(measured)], measured, "the run under way was kept")
        self.assertEqual((len(runs), len({name[:4] for name in runs})), (answer["runs"], answer["runs"]))
        self.assertEqual((answer["commits"], answer["unit"]), (COMMITS, "s/step"))
        ends = {it["commit"]: it["n"] for it in answer["measured"]}
        self.assertGreaterEqual(min(ends[commits[0]], ends[commits[-1]]), 3)
        self.assertEqual((self.git("status", "--porcelain"), self.git("worktree", "list"), self.git("rev-parse", "HEAD")),
                         before)

        # Asked again, it answers from what it has.
        status, out, _ = self.place.run("record", "bisect", *asked)
        self.assertEqual(status, 0)
        self.assertIn(f"{commits[CULPRIT]} Commit {CULPRIT}", out)
        self.assertEqual(sorted(it.name for it in (folder / "runs").iterdir()), runs)
        self.bisect_that_cannot_tell(commits, folder)

    def test_a_folder_from_elsewhere_orders_nothing(self):
        commits = self.make_commits()
        folder, copy, mark = (self.place.path / name for name in ("search", "copy", "MARK"))
        asked = ("--repository", self.repository, "--budget", 8, commits[0], commits[5], "--", "sh", "-c",
                 f"echo >> {mark}; ls; python3 train.py; : --token=hunter2")
        status, _, err = self.place.run("record", "bisect", "--folder", folder, *asked)
        self.assertEqual(status, 11, err)
        self.assertNotIn("hunter2", (folder / ".state" / "plan.json").read_text())
        shutil.copytree(folder, copy)
        (copy / "tree" / "random.py").write_text(f"open({str(mark) + '2'!r}, 'w')")  # Python would import it
        mark.unlink()
        for more in ((), ("--budget", 100), (commits[0], commits[5])):
            status, _, err = self.place.run("record", "bisect", "--folder", copy, *more)
            self.assertEqual(status, 2, err)
            for words in ("begun elsewhere", f"checkouts of {self.repository}", f"echo >> {mark}"):
                self.assertIn(words, err)
        status, _, err = self.place.run("record", "bisect", "--folder", copy, "--repository", self.repository, commits[1], commits[5],
                                        *asked[6:])
        self.assertEqual(status, 2, err)
        self.assertIn("commits", err)
        self.assertFalse(mark.exists())
        for end in (copy / ".state").glob("0*.json"):
            end.unlink()
        status, _, err = self.place.run("record", "bisect", "--folder", copy, *asked)
        self.assertEqual(status, 11, err)
        self.assertEqual((mark.exists(), pathlib.Path(str(mark) + "2").exists()), (True, False))
        plan = json.loads((copy / ".state" / "plan.json").read_text())
        for change in ({"repository": "--upload-pack=touch " + str(mark)}, {"commits": ["--orphan", "-b"]}, {"commits": "x"}, {"by": 5}):
            (copy / ".state" / "plan.json").write_text(json.dumps(plan | {"id": "0" * 32} | change))
            for more in ((), asked):
                status, _, err = self.place.run("record", "bisect", "--folder", copy, *more)
                self.assertIn(status, (1, 2) if more == () or "repository" not in change else (11,), err)

    def bisect_that_cannot_tell(self, commits, folder):
        status, out, err = self.place.run("record", "bisect", "--folder", self.place.path / "same", "--repository",
                                          self.repository, "--budget", 8, "--json", commits[0], commits[5], "--",
                                          "python3", "train.py")
        answer = json.loads(out)
        self.assertEqual((status, answer["verdict"], answer["runs"], answer["found"]), (11, "cannot-tell", 8, None), err)
        self.assertIn("budget of 8 runs", answer["reason"])
        for arguments, code, said in (
                (("--folder", folder, commits[1], "main", "--", "python3"), 2, "other commits"),
                (("--folder", folder, commits[0], "main", "--", "true"), 2, "another command"),
                (("--folder", self.place.path / "new"), 2, "GOOD, BAD"),
                (("--folder", self.place.path / "new", "--repository", self.repository, "nothing", "main", "--", "true"), 2,
                 "'nothing' is not a commit"),
                (("--folder", self.place.path / "new", "--repository", self.repository, "main", commits[0], "--", "true"), 2,
                 "no commit after"),
                (("--folder", self.place.path / "new", "--repository", self.place.path, "a", "b", "--", "true"), 2, "git checkout"),
                (("--folder", self.place.path / "words", "--repository", self.repository, commits[0], "main", "--", "echo",
                  "hello"), 1, "--by wall")):
            status, _, err = self.place.run("record", "bisect", *arguments)
            self.assertEqual(status, code, (arguments, err))
            self.assertIn(said, err)

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
        script = TRAIN.replace("f\"{os.environ['STEPLADDER_RUN']} {step_ms}\"",
                               "f\"{os.environ['STEPLADDER_RUN']} {os.getcwd()}\"").replace("0.01)", "0.002)", 1)
        self.git("init", "-q", "-b", "main")
        folder = self.repository / "inner"
        folder.mkdir()
        (folder / "train.py").write_text(script)
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
                ("val_bpb", 0.98, 0.98, ("--lower",), 0, "passes"), ("val_bpb", 0.98, 0.95, ("--lower",), 0, "passes"),
                ("val_bpb", 0.98, 1.02, ("--lower",), 10, "worse"), ("acc", 0.7, 0.6, (), 10, "worse"), ("acc", 0.6, 0.7, (), 0, "passes"),
                ("score", -5, -6, (), 10, "worse")):
            status, judged, err = gate(name, base, now, *more)
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

    def test_bisect_finds_the_commit_that_moved_a_metric(self):
        self.git("init", "-q", "-b", "main")
        (self.repository / "train.py").write_text("import random\nbias = float(open('bias').read())\n"
                                                  "print(f'val_bpb: {bias + random.gauss(0, 1e-4):.6f}')\n")
        for i in range(6):
            (self.repository / "bias").write_text("-0.97" if i < 4 else "-0.99")
            (self.repository / "notes").write_text(f"commit {i}\n")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", f"Commit {i}")
        commits = self.git("rev-list", "--reverse", "HEAD").split()
        status, out, err = self.place.run("record", "bisect", "--folder", self.place.path / "search", "--repository", self.repository,
                                          "--metric", "val_bpb", "--lower", "--json", commits[0], "main", "--", sys.executable, "train.py")
        answer = json.loads(out or "{}")
        self.assertEqual((status, answer.get("verdict"), answer.get("metric")), (0, "found", "val_bpb"), err)
        self.assertEqual(answer["found"]["commit"], commits[4])
        self.assertAlmostEqual(answer["found"]["change"], -0.02, 2)

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
