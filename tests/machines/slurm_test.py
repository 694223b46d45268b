#!/usr/bin/env python3
"""stepladder-far on a real Slurm of two nodes. Skipped where machines.py can't work."""
import os
import pathlib
import sys
import time
import unittest

from machines import SLURM_PROGRAMS, Slurm, require
from talk import FAR, Refused, Talk, events_of, new_run, of_kind, output_of, wait_for

TRAP = "trap 'echo saved; exit 130' INT; echo ready; while :; do sleep 0.05; done"


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Slurm())
        cls.folder = cls.cluster.home / "far"

    def setUp(self):
        self.slow = self.talk()

    def talk(self, *, path=None):
        environment = {**os.environ, "HOME": str(self.cluster.home), "PATH": (f"{path}:" if path else "") + os.environ["PATH"]}
        talk = Talk(None, command=[*self.cluster.far_prefix(), str(FAR), "talk", "--folder", str(self.folder)], environment=environment)
        self.addCleanup(lambda: talk.process.poll() is None and talk.kill())
        return talk

    def output(self, run, attempt=1):
        try:
            return output_of((self.folder / "runs" / run / "keeper" / f"rank-0.{attempt}.jsonl").read_bytes())
        except FileNotFoundError:
            return b""

    def jobs(self, run):
        """Numbers of all jobs that Slurm has for the run."""
        return self.cluster.in_far("squeue", "--noheader", "--states=all", f"--name=stepladder-{run}-1", "--format=%i").stdout.split()

    def test_describes_the_cluster(self):
        found = self.slow.do("slurm")
        self.assertTrue(found["available"])
        self.assertRegex(found["version"], "^slurm")
        self.assertFalse(found["accounting"])
        main, single = found["partitions"]
        self.assertEqual((main["name"], main["default"], main["nodes"], main["gpus"]), ("main", True, 2, 0))
        self.assertEqual((main["time_limit"], single["default"], single["nodes"]), ("1:00:00", False, 1))
        self.assertIsNotNone(main["running"])
        run = self.slow.start(["sh", "-c", "while :; do sleep 0.1; done"], slurm={"partition": "single"})
        wait_for(lambda: self.slow.state(run)["phase"] == "running")
        found = wait_for(lambda: (lambda s: s if s["partitions"][1]["running"] else None)(self.slow.do("slurm")))  # read within 30 s
        self.assertEqual((found["running"], found["pending"], found["partitions"][1]["running"]), (1, 0, 1))
        self.slow.do("signal", run=run, signal="kill")
        self.slow.ended(run)

    def test_runs_a_job(self):
        talk = self.slow
        run = talk.start(["sh", "-c", "echo on $(hostname) $GREETING; pwd; exit 3"], slurm={"partition": "single", "time": "5"},
                         env={"GREETING": "hej"})
        state = talk.ended(run)
        self.assertEqual((state["status"], state["code"]), ("failed", 3))
        self.assertRegex(state["job"]["id"], r"^\d+$")
        self.assertEqual(self.output(run), b"on node1 hej\n%s/runs/%s/work\n" % (bytes(self.folder), run.encode()))
        again = self.talk()
        self.assertEqual(again.do("start", run=run, name="", command=["false"], slurm={})["code"], 3)
        self.assertEqual(self.jobs(run), [state["job"]["id"]])
        with self.assertRaisesRegex(Refused, "sbatch: .*partition"):
            talk.start(["true"], slurm={"partition": "nonsense"})

    def test_two_nodes_have_ranks(self):
        run = self.slow.start(["sh", "-c", "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT"],
                              slurm={"nodes": 2, "tasks_per_node": 2})
        self.assertEqual(self.slow.ended(run)["status"], "finished")
        lines = sorted(self.output(run).decode().splitlines())
        self.assertEqual([line.split()[:2] for line in lines], [["0/4", "0/2"], ["1/4", "1/2"], ["2/4", "0/2"], ["3/4", "1/2"]])
        self.assertEqual(len({tuple(line.split()[2:]) for line in lines}), 1)
        self.assertEqual(lines[0].split()[2], "node1")

    def test_repeats_are_one_array(self):
        repeats = [new_run() for _ in range(3)]
        fields = dict(name="", command=["sh", "-c", f"echo task $SLURM_ARRAY_TASK_ID; {TRAP}"], slurm={"at_once": 2}, repeats=repeats)
        for run in repeats:
            self.slow.do("start", run=run, **fields)
        wait_for(lambda: all(b"ready" in self.output(run) for run in repeats[:2]))
        states = [wait_for(lambda run=run: (lambda s: s if s["job"]["state"] else None)(self.slow.state(run))) for run in repeats]
        array = states[0]["job"]["id"].split("_")[0]
        self.assertEqual([state["job"]["id"] for state in states], [f"{array}_{task}" for task in (1, 2, 3)])
        self.assertEqual(self.slow.state(repeats[2])["phase"], "queued")  # two at once
        self.slow.do("signal", run=repeats[0], signal="stop")
        self.assertEqual(self.slow.ended(repeats[0])["status"], "stopped")
        self.assertEqual(self.output(repeats[0]), b"task 1\nready\nsaved\n")
        wait_for(lambda: b"task 3\nready" in self.output(repeats[2]))  # now it has room
        self.assertEqual(self.slow.state(repeats[1])["phase"], "running")  # a stop is of one repeat
        started = of_kind(events_of((self.folder / "runs" / repeats[2] / "keeper" / "rank-0.1.jsonl").read_bytes())[0], "run")[0]
        self.assertEqual((started["uid"], started["job"]), (repeats[2], f"{array}_3"))
        for run in repeats[1:]:
            self.slow.do("signal", run=run, signal="stop")
        for run in repeats[1:]:
            self.assertEqual(self.slow.ended(run)["status"], "stopped")
        # Each is started again by itself, as a job of its own.
        self.slow.do("start", run=repeats[1], name="", command=["echo", "again"], slurm={}, number=2)
        self.assertEqual(self.slow.ended(repeats[1])["number"], 2)
        wait_for(lambda: self.output(repeats[1], 2) == b"again\n")

    def test_stop_reaches_the_program(self):
        for wish, readers in ({}, 1), ({"nodes": 2}, 2):
            with self.subTest(wish):
                run = self.slow.start(["sh", "-c", TRAP], slurm=wish)
                wait_for(lambda: self.output(run).count(b"ready\n") == readers)
                wait_for(lambda: self.slow.state(run)["job"]["state"] == "RUNNING")
                self.slow.do("signal", run=run, signal="stop")
                state = self.slow.ended(run)
                self.assertEqual((state["phase"], state["status"]), ("ended", "stopped"))
                self.assertEqual(self.output(run).count(b"saved\n"), readers)

    def test_pause(self):
        run = self.slow.start(["sh", "-c", TRAP], slurm={})
        wait_for(lambda: b"ready" in self.output(run))
        wait_for(lambda: self.slow.state(run)["job"]["state"] == "RUNNING")
        self.slow.do("signal", run=run, signal="pause")
        wait_for(lambda: self.slow.state(run)["paused"])
        self.slow.do("signal", run=run, signal="continue")
        wait_for(lambda: not self.slow.state(run)["paused"])
        self.slow.do("signal", run=run, signal="kill")
        self.assertEqual(self.slow.ended(run)["code"], 137)

    def test_drained_node_and_cancelled_job(self):
        self.cluster.in_far("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test")
        try:
            run = self.slow.start(["true"], slurm={"partition": "single"})
            state = wait_for(lambda: (lambda s: s if s["reason"] else None)(self.slow.state(run)))
            self.assertEqual((state["phase"], state["job"]["state"]), ("queued", "PENDING"))
            self.slow.do("signal", run=run, signal="stop")
            state = self.slow.ended(run)
            self.assertEqual((state["phase"], state["job"]["state"]), ("gone", "CANCELLED"))
            self.assertIn("is CANCELLED", state["reason"])
        finally:
            self.cluster.in_far("scontrol", "update", "NodeName=node2", "State=RESUME")
        # A running job that an administrator cancels: the keeper has time to write the end.
        run = self.slow.start(["sh", "-c", "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done"], slurm={})
        wait_for(lambda: b"ready" in self.output(run))
        self.cluster.in_far("scancel", self.slow.state(run)["job"]["id"])
        self.assertIn(self.slow.ended(run)["phase"], ("ended", "gone"))
        # Slurm forgets a job, this folder doesn't.
        self.assertIn(self.talk().state(run)["phase"], ("ended", "gone"))

    def test_time_limit(self):
        """Slurm looks every half minute, so that this test takes as long."""
        run = self.slow.start(["sh", "-c", TRAP], slurm={"time": "2", "signal_s": 110})
        state = self.slow.ended(run)
        self.assertEqual((state["status"], state["code"]), ("stopped", 130))
        self.assertIn("time limit was near", state["reason"])
        self.assertIn(b"saved\n", self.output(run))

    def test_requeued_job_is_the_next_attempt(self):
        run = self.slow.start(["sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.05; done; echo done"], slurm={})
        wait_for(lambda: b"ready" in self.output(run))
        self.cluster.in_far("scontrol", "requeue", self.slow.state(run)["job"]["id"])
        # Slurm waits before it begins a requeued job; the hold is taken off by hand, again if Slurm sets it meanwhile. Not within
        # the second of the kill: slurmd would refuse the launch as one of the killed job, and slurmctld would not hear of it.
        job = self.slow.state(run)["job"]["id"]
        wait_for(lambda: "PENDING" in self.cluster.in_far("squeue", "--noheader", "--format=%T", "--jobs=" + job).stdout)

        def has_begun():
            time.sleep(2)
            self.cluster.in_far("scontrol", "update", "JobId=" + job, "StartTime=now", check=False)
            return b"ready" in self.output(run, 2)
        wait_for(has_begun)
        (self.folder / "runs" / run / "work" / "go").touch()
        state = wait_for(lambda: (lambda s: s if s["attempt"] == 2 and s["phase"] == "ended" else None)(self.slow.state(run)))
        self.assertEqual((state["status"], state["job"]["id"]), ("finished", job))
        self.assertEqual(self.output(run, 2), b"ready\ndone\n")

    def test_submission_that_is_cut_off(self):
        programs = self.cluster.path / "bin"
        programs.mkdir()
        fake = programs / "sbatch"
        fake.write_text(f"#!/bin/sh\nPATH=${{PATH#*:}}\nid=$(sbatch \"$@\") && touch {programs}/submitted && sleep 1000; echo $id\n")
        fake.chmod(0o755)
        talk = self.talk(path=programs)
        run = new_run()
        fields = dict(run=run, name="", command=["sh", "-c", f"echo x >>{programs}/ran"], slurm={})
        talk.send("start", **fields)
        wait_for((programs / "submitted").exists)
        with self.assertRaisesRegex(Refused, "ask again"):
            self.slow.do("start", **fields)
        # Through nsenter: the talker itself dies, between sbatch and job.json.
        for pid in self.cluster.processes_there("stepladder-far"):
            if " talk " in self.cluster.processes_there("stepladder-far").get(pid, ""):
                self.cluster.in_far("kill", "-9", pid, check=False)
        talk.kill()
        self.assertFalse((self.folder / "runs" / run / "job.json").exists())
        other = self.talk()
        state = other.do("start", **fields)
        self.assertEqual(other.ended(run)["status"], "finished")
        self.assertEqual(self.jobs(run), [state["job"]["id"]])
        self.assertEqual((programs / "ran").read_text(), "x\n")

    def test_two_talkers_submit_once(self):
        other = self.talk()
        run = new_run()
        fields = dict(run=run, name="", command=["true"], slurm={})
        numbers = [(talk, talk.send("start", **fields)) for talk in (self.slow, other)]
        answers = []
        for talk, number in numbers:
            try:
                answers.append(talk.answer(number)["run"])
            except Refused as refused:
                self.assertIn("ask again", str(refused))
        self.assertIn(run, answers)
        self.slow.ended(run)
        self.assertEqual(len(self.jobs(run)), 1)

    def test_killed_keeper(self):
        run = self.slow.start(["sleep", "1000"], slurm={})
        wait_for(lambda: self.slow.state(run)["phase"] == "running")
        job = self.slow.state(run)["job"]["id"]
        journal = self.folder / "runs" / run / "keeper" / "rank-0.1.jsonl"
        self.cluster.in_far("kill", "-9", of_kind(events_of(journal.read_bytes())[0], "run")[0]["pid"])
        state = self.slow.ended(run)
        self.assertEqual(state["phase"], "gone")
        self.assertIsNone(state["status"])
        self.assertRegex(state["reason"], f"job {job} is (FAILED|CANCELLED)")


if __name__ == "__main__":
    require(*SLURM_PROGRAMS)
    if not FAR.exists():
        print(f"skipped: {FAR} wasn't built")
        sys.exit(77)
    unittest.main()
