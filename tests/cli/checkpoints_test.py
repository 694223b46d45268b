"""Whose a checkpoint is, whether it is whole, and whether its steps are stored: from the command line."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import time
import unittest

from program import PATIENCE_S, SMALLEST, TINY, Workplace

RECIPE = [*TINY, "--keep", 0]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)
        self.root = self.place.path / "runs.db.checkpoints"

    def train(self, *options, steps, every=10):
        """A run with a checkpoint after each of some steps: one step is slow enough for the disk."""
        return self.place.json("train", *RECIPE, "--steps", steps, "--save-every", every, *options)

    def saved(self, run):
        return {c["step"]: pathlib.Path(c["folder"]) for c in self.place.json("show", run)["checkpoints"]}

    def trained_in_pieces(self, *ends):
        """One run with a checkpoint at each of these steps, whatever the disk is busy with."""
        run = self.train(steps=ends[0], every=1000000)["id"]
        for end in ends[1:]:
            self.place.json("train", "--resume", run, "--steps", end)
        self.assertEqual(sorted(self.saved(run)), list(ends))
        return run

    def execute(self, sql, *values):
        with contextlib.closing(sqlite3.connect(self.place.database)) as database, database:
            return database.execute(sql, values).fetchall()

    def losses(self, run):
        return {s["step"]: s["loss"] for s in self.place.json("show", run, "--steps")["data"]}

    def test_a_new_run_leaves_those_of_a_deleted_database_alone(self):
        self.assertEqual(self.train(steps=33)["id"], 1)
        for path in self.place.path.glob("runs.db*"):
            if path != self.root:
                path.unlink()
        before = contents(self.root / "run-1")
        run = self.train("--lr", "0.5", steps=20)
        self.assertEqual(run["id"], 1)
        self.assertEqual(contents(self.root / "run-1"), before)
        own = self.saved(1)
        self.assertEqual(sorted(own)[-1], 20)
        self.assertEqual({folder.parent.name[:6] for folder in own.values()}, {"run-1-"})
        longer = self.place.json("train", "--resume", 1, "--steps", 40)
        self.assertEqual((longer["status"], longer["steps"]), ("finished", 40))
        whole = self.place.json("train", *RECIPE, "--lr", "0.5", "--steps", 40)
        self.assertEqual(self.losses(1), self.losses(whole["id"]), "continued from its own weights")
        out = self.place.path / "weights.safetensors"
        self.assertEqual(self.place.run("export", "1@33", "--format", "safetensors", "--out", out)[0], 1)
        self.execute("insert into curation (run_id, deleted_at) values (1, 1)")
        self.place.json("bin", "--empty", "--yes")
        self.assertEqual(contents(self.root / "run-1"), before)
        self.assertEqual([path.name for path in self.root.iterdir()], ["run-1"])

    def test_every_flipped_bit_is_noticed_and_the_one_before_is_used(self):
        run = self.trained_in_pieces(10, 20)
        whole = self.losses(self.place.json("train", *RECIPE, "--steps", 30)["id"])
        copy = self.place.path / "copy"
        copy.mkdir()
        kept = {path.name: path for path in self.place.path.glob("runs.db*")}
        for path in kept.values():
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy / path.name)
        dice = random.Random(14)
        newest = self.saved(run)[20]
        for attempt, file in enumerate(sorted(newest.iterdir()) * 2):
            data = bytearray(file.read_bytes())
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            file.write_bytes(data)
            status, _, error = self.place.run("train", "--resume", run, "--steps", 30)
            self.assertEqual(status, 0, error)
            self.assertIn(f"the checkpoint of step 20 is not used: {newest}", error)
            shown = self.place.json("show", run)
            self.assertIn("the checkpoint of step 20 is not used: ", shown["console"])
            self.assertEqual((shown["status"], shown["steps"]), ("finished", 30))
            self.assertEqual(self.losses(run), whole)
            for name, path in kept.items():
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                (shutil.copytree if (copy / name).is_dir() else shutil.copy)(copy / name, path)
            for path in self.place.path.glob("runs.db-*"):
                path.unlink()

    def test_no_whole_one_left_is_a_clear_error(self):
        run = self.trained_in_pieces(10, 20)
        for folder in self.saved(run).values():
            os.truncate(folder / "optimizer.safetensors", 100)
        for command in (["train", "--resume", run, "--steps", 30], ["train", "--fork", run, "--steps", 30],
                        ["export", run, "--format", "safetensors", "--out", self.place.path / "x"]):
            status, _, error = self.place.run(*command)
            self.assertEqual(status, 1, error)
            self.assertIn(f"run {run} has no usable checkpoint: the checkpoint of step 20 is not used: ", error)
            self.assertIn("the checkpoint of step 10 is not used: ", error)
        status, _, error = self.place.run("train", "--fork", f"{run}@20", "--steps", 30)
        self.assertEqual(status, 1)
        self.assertIn("optimizer.safetensors is damaged", error)
        self.assertIn("it has: 10, 20", error)
        self.assertEqual(self.place.json("show", run)["status"], "finished", "as it was")
        self.assertEqual(len(self.place.json("runs")), 1)

    def test_a_checkpoint_without_its_steps_is_not_resumed(self):
        run = self.trained_in_pieces(10, 20, 30)
        whole = self.losses(run)
        self.execute("delete from steps where run_id = ? and step between 14 and 16", run)
        status, _, error = self.place.run("train", "--resume", run, "--steps", 30)
        self.assertEqual(status, 0, error)
        self.assertIn("the checkpoint of step 30 is not used: 27 of 30 steps are stored; 3 between 14 and 16 are missing",
                      error)
        self.assertIn("the checkpoint of step 20 is not used: 17 of 20 steps", error)
        self.assertEqual(self.losses(run), whole)
        self.execute("delete from steps where run_id = ? and step = 3", run)
        status, _, error = self.place.run("train", "--resume", run, "--steps", 40)
        self.assertEqual(status, 1)
        self.assertIn("the checkpoint of step 10 is not used: 9 of 10 steps are stored; step 3 is missing", error)

    def test_a_run_is_not_resumed_to_fewer_steps_than_it_has(self):
        run = self.trained_in_pieces(10, 20)
        shutil.rmtree(self.saved(run)[20])
        before = self.place.json("show", run, "--steps")
        for steps in (11, 15, 19):
            status, _, error = self.place.run("train", "--resume", run, "--steps", steps)
            self.assertEqual(status, 2, error)
            self.assertIn(f"--steps: run {run} has recorded 20 steps, more than {steps}; give it at least as many", error)
        self.assertEqual(self.place.json("show", run, "--steps"), before)
        for steps in (20, 21):
            resumed = self.place.json("train", "--resume", run, "--steps", steps)
            self.assertEqual((resumed["status"], resumed["last_step"]), ("finished", steps))
        fork = self.place.json("train", "--fork", f"{run}@10", "--steps", 15)
        self.assertEqual((fork["status"], fork["last_step"]), ("finished", 15))

    def test_no_run_finishes_with_a_hole(self):
        # The file drops a step, as a stranger's trigger might, or a fault that nobody knows of.
        self.place.json("train", *RECIPE, "--steps", 1)
        process = self.place.start("train", *SMALLEST, "--steps", 3000, "--save-every", 500, "--name", "holed")
        while not self.steps_of("holed") and process.poll() is None:
            time.sleep(0.01)
        self.execute("delete from steps where run_id = 2 and step = 1")
        _, error = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn(": failed", error)
        run = self.place.json("show", "holed")
        self.assertEqual((run["status"], run["reason"]),
                         ("failed", "2,999 of 3,000 steps are stored; step 1 is missing"))

    def test_no_checkpoint_gets_its_name_and_none_goes_while_steps_cannot_be_stored(self):
        process = self.place.start("train", *TINY, "--save-every", 20, "--keep", 2, "--steps", 100000)
        deadline = time.monotonic() + PATIENCE_S
        while len(self.names()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        with contextlib.closing(sqlite3.connect(self.place.database, timeout=30, isolation_level=None)) as lock:
            lock.execute("begin exclusive")
            stored = lock.execute("select max(step) from steps").fetchone()[0]
            time.sleep(0.5)  # one whose steps had just been stored may get its name
            before = self.names()
            time.sleep(3)
            during = self.names()
            lock.execute("rollback")
        while max(self.names()) <= max(during) and process.poll() is None and time.monotonic() < deadline + 60:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(during, before)
        self.assertLessEqual(max(during), stored)
        self.assertGreater(max(self.names()), max(during), error)
        self.assertNotIn("was not saved", error)

    def names(self):
        return sorted(int(path.name[5:]) for path in self.root.glob("run-1/step-????????"))

    def test_what_killed_savers_left_goes_at_the_next_start(self):
        run = self.train(steps=10)["id"]
        uid = self.one("select uid from runs where id = ?", run)
        folder = self.root / f"run-{run}"
        left = [folder / f"step-00000099.{uid[:8]}.part", folder / f"step-00000005.{uid[:8]}.removed"]
        others = [folder / "step-00000099.00000000.part", folder / "notes"]
        for path in left + others:
            path.mkdir()
            (path / "model.safetensors").write_text("half")
        self.place.json("train", *RECIPE, "--steps", 1)
        self.assertEqual([path for path in left if path.exists()], [])
        self.assertEqual([path for path in others if not path.exists()], [])
        self.assertEqual(list(self.saved(run)), [10])

    def test_a_killed_ladder_goes_on_where_it_was(self):
        for save_every in (20, 0):  # with checkpoints, and without any
            rungs = ["ladder", *SMALLEST, "--keep", 0, "--steps", 400, "--save-every", save_every, "--stages",
                     "baseline,weight-tying,init-scaling", "--repeats", 2, "--name", f"killed {save_every}"]
            process = self.place.start(*rungs)
            sql = "select count(distinct run_id) from steps join runs on runs.id = run_id join ladders on " \
                  "ladders.id = ladder_id where ladders.name = ? and step > 100"
            deadline = time.monotonic() + PATIENCE_S
            while self.one(sql, f"killed {save_every}") < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.kill()
            process.communicate()
            ladder = self.one("select max(id) from ladders")
            before = self.runs_of(ladder)
            self.assertEqual(len(before), 6)
            self.assertIn("finished", before.values())
            self.assertEqual(list(before.values()).count("interrupted") + list(before.values()).count("finished"), 6)
            begun = [run for run, state in before.items() if state == "interrupted" and
                     self.one("select count(*) from steps where run_id = ?", run)]
            repeated = len([run for run in begun if not self.saved(run)])
            status, out, error = self.place.run("ladder", "--continue", ladder, "--json")
            self.assertEqual(status, 0, error)
            after = self.runs_of(ladder)
            for run, was in before.items():
                if was == "finished":
                    self.assertEqual(after[run], "finished")
            finished = [run for run, state in after.items() if state == "finished"]
            self.assertEqual(len(finished), 6, after)
            self.assertEqual(len(after), 6 + repeated, "a run without a checkpoint is repeated")
            for run in finished:
                steps = [step for step, in self.execute("select distinct step from steps where run_id = ?", run)]
                self.assertEqual(sorted(steps), list(range(1, 401)))
            self.assertEqual(len(json.loads(out)["runs"]), len(after))
            status, _, error = self.place.run("ladder", "--continue", ladder)
            self.assertEqual(status, 0, error)
            self.assertIn("nothing of this ladder is left to train", error)
            self.assertEqual(self.runs_of(ladder), after)
        self.assertEqual(self.place.run("ladder", "--continue", ladder, "--steps", 5)[0], 2)
        self.assertEqual(self.place.run("ladder", "--continue", "nowhere")[0], 1)

    def one(self, sql, *values):
        try:
            return self.execute(sql, *values)[0][0]
        except sqlite3.Error:
            return 0

    def runs_of(self, ladder):
        self.place.run("runs")  # closes the runs of processes that have exited
        return dict(self.execute("select id, status from runs where ladder_id = ? order by id", ladder))

    def steps_of(self, name):
        try:
            return self.execute("select count(*) from steps join runs on runs.id = run_id where name = ?", name)[0][0]
        except sqlite3.Error:
            return 0


if __name__ == "__main__":
    unittest.main(verbosity=2)
