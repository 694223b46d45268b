#!/usr/bin/env python3
"""The whole program against a real sshd and a real Slurm: ladders and scripts there, their runs here. Skipped where machines.py
can't work."""
import json
import pathlib
import signal
import sqlite3
import sys
import time
import unittest

from machines import SLURM_PROGRAMS, Sshd, Slurm, missing, require

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from near_test import LOGGER, ROOT  # noqa: E402
from program import BUILD, PATIENCE_S, PROGRAM, TINY, Workplace  # noqa: E402

CPU = ["--device", "cpu", "--threads", "1"]
HAS_TRAINER = bool(list(BUILD.glob("libstepladder_trainer.*")))


class Here(Workplace):
    """This side, with one machine."""

    def __init__(self, box, *options):
        super().__init__()
        self.box = box
        self.environment["STEPLADDER_SSH"] = str(box.ssh)
        self.succeeds("machines", "add", box.alias, "--program", PROGRAM, *options)
        (self.path / "logger.py").write_text(LOGGER.format(python=str(ROOT / "python")))

    def succeeds(self, *arguments):
        status, out, err = self.run(*arguments)
        assert status == 0, f"{arguments}: exit {status}: {out}{err}"
        return out, err

    def rows(self, sql, *values):
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            return database.execute(sql, values).fetchall()

    def losses(self, name):
        return dict(self.rows("SELECT step, loss FROM steps JOIN runs ON runs.id = run_id WHERE runs.name = ? ORDER BY step", name))

    def wait(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if condition():
                    return
            except sqlite3.Error:
                pass
            assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}"
            time.sleep(0.1)

    def log_steps(self, name, steps, pause, *options):
        return self.start("watch", "--on", self.box.alias, "--there", self.path, "--name", name, *options, "--", sys.executable,
                          "logger.py", steps, pause)


def logged(steps):
    return {step: 4 - step / 1000 for step in range(1, steps + 1)}


class Ssh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.box = cls.enterClassContext(Sshd(bashrc="echo Welcome; echo '{\"stepladder-far\":1}'\n"))

    def setUp(self):
        self.here = Here(self.box)
        self.addCleanup(self.here.close)

    def test_the_issue_s_commands(self):
        (checked,) = self.here.json("machines", "check", "box")
        self.assertEqual((checked["reachable"], checked["host"]), (True, "box"))
        self.assertEqual({each["result"] for each in checked["checks"]}, {"ok"}, checked["checks"])
        if not HAS_TRAINER:
            return
        ladder = self.here.json("ladder", "--on", "box", "--stages", "baseline,bf16", *TINY, "--steps", "12", *CPU)
        self.assertEqual([rung["stage"] for rung in ladder["rungs"]], ["baseline", "bf16"])
        self.assertEqual({run["machine"] for run in self.here.json("runs")}, {"box"})
        self.assertEqual({run["host"] for run in self.here.json("runs")}, {"box"})

    def test_a_link_that_is_down_loses_and_doubles_nothing(self):
        tracker = self.here.log_steps("down", 1500, 0.02)
        self.here.wait("steps", lambda: len(self.here.losses("down")) > 50)
        self.box.link_down()
        self.here.wait("a word", lambda: "unreachable since" in (self.here.rows("SELECT reason FROM runs")[0][0] or ""))
        self.assertEqual(self.here.rows("SELECT status FROM runs"), [("running",)])
        self.box.link_up()
        _, err = tracker.communicate(timeout=PATIENCE_S)
        self.assertEqual(tracker.returncode, 0, err)
        self.assertEqual(self.here.losses("down"), logged(1500))
        self.assertEqual(self.here.rows("SELECT count(*) FROM superseded_steps"), [(0,)])

    def test_the_run_outlives_this_side_and_no_talker_does(self):
        tracker = self.here.log_steps("alone", 600, 0.02)
        self.here.wait("steps", lambda: len(self.here.losses("alone")) > 20)
        tracker.send_signal(signal.SIGKILL)
        tracker.communicate()
        self.here.wait("no talker there", lambda: not self.talkers())
        self.here.succeeds("machines", "follow")
        self.assertEqual(self.here.losses("alone"), logged(600))
        self.here.wait("nothing there", lambda: not self.box.processes_there("stepladder-far"))

    def talkers(self):
        return [line for line in self.box.processes_there("stepladder-far").values() if " talk " in line]


class SlurmHere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        why = missing(*SLURM_PROGRAMS)
        if why:
            raise unittest.SkipTest(why)
        cls.cluster = cls.enterClassContext(Slurm())

    def setUp(self):
        self.here = Here(self.cluster, "--slurm")
        self.addCleanup(self.here.close)

    def test_a_script_on_two_nodes(self):
        script = self.here.path / "train.sh"
        script.write_text("#!/bin/sh\n[ \"$RANK\" = 0 ] || exit 0\nfor i in 1 2 3 4 5; do echo \"step $i | loss $WORLD_SIZE.$i | dt 10.0ms\"; done\n")
        script.chmod(0o755)
        out, _ = self.here.succeeds("watch", "--on", "cluster", "--nodes", "2", "--there", self.here.path, "--", "./train.sh")
        self.assertEqual(self.here.losses("train.sh"), {i: 2 + i / 10 for i in range(1, 6)}, out)
        ((environment,),) = self.here.rows("SELECT environment FROM runs")
        self.assertTrue(json.loads(environment)["job"], environment)

    def test_repeats_are_one_array_and_one_rung(self):
        script = self.here.path / "repeat.sh"
        script.write_text("#!/bin/sh\nfor i in 1 2 3 4 5; do echo \"step $i | loss $SLURM_ARRAY_TASK_ID.$i | dt 10.0ms\"; done\n"
                          "[ $SLURM_ARRAY_TASK_ID != 3 ] || exit 7\n")
        script.chmod(0o755)
        status, _, err = self.here.run("watch", "--on", "cluster", "--repeats", "3", "--at-once", "2", "--there", self.here.path, "--",
                                       "./repeat.sh")
        self.assertEqual(status, 7, err)  # the exit status of the repeat that failed
        self.assertEqual(self.here.rows("SELECT name, rung, repeat, status FROM runs ORDER BY repeat"),
                         [("repeat.sh #1", 0, 0, "finished"), ("repeat.sh #2", 0, 1, "finished"), ("repeat.sh #3", 0, 2, "failed")])
        self.assertEqual(self.here.rows("SELECT name FROM ladders"), [("repeat.sh",)])
        for repeat in (1, 2, 3):
            self.assertEqual(self.here.losses(f"repeat.sh #{repeat}"), {i: repeat + i / 10 for i in range(1, 6)})
        jobs = [json.loads(row[0])["job"] for row in self.here.rows("SELECT environment FROM runs ORDER BY repeat")]
        array = jobs[0].split("_")[0]
        self.assertEqual(jobs, [f"{array}_1", f"{array}_2", f"{array}_3"])
        self.assertEqual(self.here.rows("SELECT count(*) FROM far_runs WHERE is_over = 0"), [(0,)])
        status, _, err = self.here.run("watch", "--on", "cluster", "--repeats", "2", "--partition", "none", "--", "true")
        self.assertEqual(status, 1, err)
        self.assertEqual(err.count("refuses: sbatch"), 2, err)  # both say why
        self.assertEqual(self.here.rows("SELECT count(*) FROM far_runs WHERE is_over = 0"), [(0,)])

    def test_repeats_are_taken_in_by_the_next_process(self):
        self.here.succeeds("watch", "--on", "cluster", "--repeats", "3", "--detach", "--name", "later", "--there", self.here.path, "--",
                           sys.executable, "logger.py", "30", "0.02")
        self.here.succeeds("machines", "follow")
        for repeat in (1, 2, 3):
            self.assertEqual(self.here.losses(f"later #{repeat}"), logged(30))

    def test_the_queue_is_told(self):
        (checked,) = self.here.json("machines", "check", "cluster")
        self.assertEqual((checked["slurm"], checked["partitions"]), (True, ["main", "single"]))
        queue = checked["queue"]
        self.assertEqual((queue["running_jobs"], queue["pending_jobs"]), (0, 0), queue)
        main = queue["partitions"][0]
        self.assertEqual((main["partition"], main["default"], main["nodes"], main["running_jobs"]), ("main", True, 2, 0))
        self.assertEqual(main["idle_nodes"] + main["allocated_nodes"], 2)
        self.assertLess(abs(queue["read_at"] - time.time()), PATIENCE_S)
        text = [each["text"] for each in checked["checks"] if each["name"] == "Slurm"][0]
        self.assertIn("0 jobs running, 0 waiting, as of", text)

    @unittest.skipUnless(HAS_TRAINER, "this build can't train")
    def test_two_nodes_train_as_one_process_does(self):
        recipe = [*TINY, "--steps", "8", "--seed", "7", *CPU]
        self.here.succeeds("train", "--on", "cluster", "--nodes", "2", "--name", "two", *recipe)
        self.here.succeeds("train", "--on", "cluster", "--name", "one", *recipe)
        one, two = self.here.losses("one"), self.here.losses("two")
        self.assertEqual(list(one), list(range(1, 9)))
        self.assertEqual(list(two), list(one))
        for step, loss in one.items():
            self.assertAlmostEqual(two[step], loss, delta=2e-4, msg=f"step {step}")

    def test_a_cancelled_job_ends_where_it_was(self):
        tracker = self.here.log_steps("cancelled", 100000, 0.02)
        self.here.wait("steps", lambda: len(self.here.losses("cancelled")) > 20)
        self.cluster.in_far("sh", "-c", "scancel --name=$(squeue --noheader --format=%j)")
        tracker.communicate(timeout=PATIENCE_S)
        ((status, reason),) = self.here.rows("SELECT status, reason FROM runs")
        self.assertIn(status, ("stopped", "failed", "interrupted"), reason)
        got = self.here.losses("cancelled")
        self.assertEqual(got, logged(len(got)))


if __name__ == "__main__":
    require()
    unittest.main(verbosity=2)
