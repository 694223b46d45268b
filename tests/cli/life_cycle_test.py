"""Runs are saved, killed, resumed, forked, paused and exported from the command line."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import time
import unittest

from program import PATIENCE_S, SMALLEST, TEXT, TINY, Workplace

TOKENIZER = pathlib.Path(__file__).resolve().parents[1] / "data" / "tokenizer" / "tokenizer.json"
A_MOMENTS_STEPS = 600_000  # as many an opening deletes of a deletion that was killed
RECIPE = [*TINY, "--data", TEXT]


class LifeCycle(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def losses(self, run):
        return {s["step"]: s["loss"] for s in self.place.json("show", run, "--steps")["data"]}

    def steps_now(self):
        try:
            with sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True) as database:
                return database.execute("select count(*) from steps").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def wait_for_steps(self, count):
        deadline = time.time() + PATIENCE_S
        while self.steps_now() < count and time.time() < deadline:
            time.sleep(0.01)
        self.assertGreaterEqual(self.steps_now(), count)

    def checkpoints(self, run):
        return [c["step"] for c in self.place.json("show", run)["checkpoints"]]

    def test_a_resumed_run_equals_the_one_that_was_never_stopped(self):
        recipe = [*RECIPE, "--batch", 32]
        whole = self.place.json("train", *recipe, "--steps", 300)
        process = self.place.start("train", *recipe, "--steps", 300, "--save-every", 10, "--keep", 2, "--name", "stopped",
                                   "--progress", "json")
        # What the program says comes during its steps, however slow the disk is.
        next(line for line in process.stderr if json.loads(line)["progress"]["step"] >= 25)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        stopped = self.place.json("show", "stopped")
        self.assertEqual(stopped["status"], "stopped")
        self.assertLess(stopped["last_step"], 300)
        self.assertEqual(stopped["checkpoints"][-1]["step"], stopped["last_step"])

        resumed = self.place.json("train", "--resume", "stopped")
        self.assertEqual((resumed["id"], resumed["status"], resumed["last_step"]), (stopped["id"], "finished", 300))
        self.assertEqual(self.losses("stopped"), self.losses(whole["id"]))
        # And further than originally planned.
        longer = self.place.json("train", "--resume", stopped["id"], "--steps", 310)
        self.assertEqual((longer["last_step"], longer["steps"]), (310, 310))

    def test_a_signal_that_comes_twice_at_once_is_one(self):
        process = self.place.start("train", *SMALLEST, "--steps", 3_000_000, "--name", "twice", "--json")
        self.wait_for_steps(5)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, json.loads(out)["status"]), (130, "stopped"))

    def test_killed_at_any_moment_the_newest_checkpoint_serves(self):
        losses, ends = {}, {}
        for attempt in range(6):
            name = f"killed {attempt}"
            before = self.steps_now()
            # Saved after every step, so that the kill nearly always interrupts a save.
            process = self.place.start("train", *RECIPE, "--steps", 1_000_000, "--save-every", 1, "--keep", 2, "--name", name)
            self.wait_for_steps(before + 10 + 10 * attempt)
            # Ten steps may be done before a busy disk has one complete checkpoint.
            folder = self.place.path / "runs.db.checkpoints"
            deadline = time.monotonic() + PATIENCE_S
            while len(list(folder.glob("*/step-????????"))) <= 2 * attempt and time.monotonic() < deadline:
                time.sleep(0.005)
            self.wait_for_steps(self.steps_now() + 1)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.assertEqual(self.place.json("show", name)["status"], "interrupted")
            saved = self.checkpoints(name)
            end = self.place.json("show", name)["last_step"] + 20
            self.assertLessEqual(saved[-1], end - 20, "no checkpoint is ahead of its steps")
            self.assertIn(len(saved), (1, 2, 3), "at most the two that stay and one that had just come")
            resumed = self.place.json("train", "--resume", name, "--save-every", 1000, "--steps", end)
            self.assertEqual((resumed["status"], resumed["last_step"]), ("finished", end))
            losses[name], ends[name] = self.losses(name), end
            leftovers = [p for p in (self.place.path / "runs.db.checkpoints").rglob("*.part")]
            self.assertEqual(leftovers, [])
        expected = self.losses(self.place.json("train", *RECIPE, "--steps", max(ends.values()))["id"])
        for name, end in ends.items():
            self.assertEqual(losses[name], {step: loss for step, loss in expected.items() if step <= end})

    def test_a_checkpoint_that_could_not_be_saved_is_told_with_the_run(self):
        (self.place.path / "runs.db.checkpoints").write_text("a file where the folder should be")
        status, out, error = self.place.run("train", *RECIPE, "--steps", 6, "--save-every", 3, "--json")
        self.assertEqual(status, 1, "no checkpoint of the run could be saved")
        self.assertIn("no checkpoint could be saved: ", error)
        run = json.loads(out)
        self.assertEqual(run["status"], "finished")
        self.assertRegex(run["reason"], "^no checkpoint could be saved: ")
        shown = self.place.json("show", run["id"])
        self.assertRegex(shown["console"], r"the checkpoint of step [3-6] was not saved: /\S+ cannot be used: Not a directory")
        self.assertEqual(self.place.run("show", run["id"], "--console"), (0, shown["console"], ""))
        self.assertIsNone(self.place.json("show", self.place.json("train", *RECIPE, "--steps", 2)["id"])["console"])

    def test_a_fork_starts_from_its_parents_checkpoint(self):
        parent = self.place.json("train", *RECIPE, "--steps", 30, "--save-every", 10, "--keep", 0)
        # A save that is due during the previous one waits a step, since training never waits for the disk.
        # On a slow disk, all saves after the first may merge into later ones, or the last.
        saved = [checkpoint["step"] for checkpoint in self.place.json("show", parent["id"])["checkpoints"]]
        self.assertEqual((saved[0], saved[-1]), (10, 30))
        same = self.place.json("train", "--fork", f"{parent['id']}@10", "--name", "the same")
        self.assertEqual((same["parent"], same["forked_at_step"]), (parent["id"], 10))
        self.assertEqual((same["first_step"], same["last_step"]), (11, 30))
        losses = self.losses(parent["id"])
        self.assertEqual(self.losses(same["id"]), {step: losses[step] for step in range(11, 31)})
        other = self.place.json("train", "--fork", f"{parent['id']}@10", "--lr", "1e-2", "--stage", "fused-adamw")
        self.assertEqual(other["first_step"], 11)
        self.assertAlmostEqual(self.losses(other["id"])[11], losses[11], places=6)
        self.assertNotAlmostEqual(self.losses(other["id"])[15], losses[15], places=4)

        status, _, error = self.place.run("train", "--fork", f"{parent['id']}@15")
        self.assertEqual(status, 1)
        self.assertIn(f"no checkpoint of step 15; it has: {', '.join(map(str, saved))}", error)
        status, _, error = self.place.run("train", "--resume", parent["id"])
        self.assertEqual(status, 2)
        self.assertIn("--steps: 30 steps are already done", error)
        status, _, error = self.place.run("train", "--resume", parent["id"], "--steps", 40, "--lr", "0.5")
        self.assertEqual(status, 2)
        self.assertIn("lr 0.001 -> 0.5", error)
        self.assertIn("--fork", error)

    def test_no_reader_waits_for_a_deletion_that_was_killed(self):
        self.place.json("train", *RECIPE, "--steps", 3)
        log = self.place.path / "log.csv"
        log.write_text("step,loss\n1,2.5\n2,2.4\n")

        def kill_a_deletion(steps):
            run = self.place.json("train", *RECIPE, "--steps", 3)["id"]
            with contextlib.closing(sqlite3.connect(self.place.database)) as database, database:
                columns = [row[1] for row in database.execute("pragma table_xinfo(steps)") if row[6] == 0]
                values = ", ".join("n" if column == "step" else column for column in columns)
                database.execute(f"insert into steps ({', '.join(columns)}) with recursive numbers(n) as (select 10 union all select n + 1 "
                                 f"from numbers where n < {steps}) select {values} from steps, numbers where run_id = ? and step = 1", (run,))
                database.execute("update runs set hidden = 2, owner_pid = 1, owner_start = 1, owner_boot = 'x' "
                                 "where id = ?", (run,))
            return run

        def rows(run):
            with contextlib.closing(sqlite3.connect(self.place.database)) as database:
                return database.execute("select count(*) from steps where run_id = ?", (run,)).fetchone()[0]

        run = kill_a_deletion(3.2 * A_MOMENTS_STEPS)  # three openings delete a part
        self.place.json("runs")
        self.assertGreater(rows(run), A_MOMENTS_STEPS)
        status, _, error = self.place.run("bin")
        self.assertEqual(status, 0, error)
        self.assertIn("left 1 run half deleted", error)
        self.assertEqual(self.place.json("bin", "--empty", "--yes")["finished_deletions"], 1)
        self.assertEqual(rows(run), 0)
        for command in (["doctor", "--compact"], ["import", log]):
            run = kill_a_deletion(1.2 * A_MOMENTS_STEPS)
            self.place.json(*command)
            self.assertEqual(rows(run), 0, command)

    def test_checkpoints_go_when_their_run_goes_for_good(self):
        parent = self.place.json("train", *RECIPE, "--steps", 10, "--save-every", 10)
        fork = self.place.json("train", "--fork", f"{parent['id']}@10", "--steps", 20, "--save-every", 10)
        folder = self.place.path / "runs.db.checkpoints" / f"run-{parent['id']}"
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        self.assertEqual(self.place.json("bin"), [])
        with sqlite3.connect(self.place.database) as database:  # as the desktop does
            database.execute("insert into curation (run_id, deleted_at) values (?, ?)", (parent["id"], time.time()))
        binned = self.place.json("bin")
        self.assertEqual([(run["id"], run["checkpoint_bytes"]) for run in binned], [(parent["id"], size)])
        self.assertTrue(folder.exists(), "as long as it can be taken back")
        emptied = self.place.json("bin", "--empty", "--yes")
        self.assertEqual((emptied["runs"], emptied["freed_bytes"], emptied["problems"]), ([parent["id"]], size, []))
        self.assertFalse(folder.exists())
        self.assertEqual(self.checkpoints(fork["id"])[-1], 20)
        longer = self.place.json("train", "--resume", fork["id"], "--steps", 30)
        self.assertEqual((longer["last_step"], longer["parent"]), (30, None))
        status, out, _ = self.place.run("bin", "--empty", "--yes")
        self.assertEqual((status, out), (0, "The bin was empty\n"))

    def test_pausing_and_stopping_from_another_terminal(self):
        process = self.place.start("train", *RECIPE, "--steps", 1000000)
        self.wait_for_steps(20)
        run = self.place.json("runs")[0]["id"]
        self.assertEqual(self.place.run("pause", run)[0], 0)
        deadline = time.time() + PATIENCE_S
        held = self.steps_now()
        while time.time() < deadline:
            time.sleep(2.5)
            if self.steps_now() == held:
                break
            held = self.steps_now()
        self.assertEqual(self.steps_now(), held, "a paused run makes no steps")
        self.assertEqual(self.place.run("continue", run)[0], 0)
        self.wait_for_steps(held + 20)
        self.assertEqual(self.place.run("stop", run)[0], 0)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(self.place.json("runs")[0]["status"], "stopped")
        status, _, error = self.place.run("pause", run)
        self.assertEqual(status, 2)
        self.assertIn("is stopped", error)
        # No step's time includes the pause.
        data = self.place.json("show", run, "--steps")["data"]
        self.assertLess(max(s["dt_ms"] for s in data[5:]), 2500)

    def test_the_time_between_ctrl_z_and_fg_is_no_step(self):
        # In a group of its own, like a shell's job: a group without a shell cannot be stopped.
        process = self.place.start("train", *RECIPE, "--steps", 1000000, process_group=0)
        self.wait_for_steps(20)
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), status)
        held = self.steps_now()
        stopped_s = 5
        time.sleep(stopped_s)
        self.assertEqual(self.steps_now(), held, "every step before the stop was written before it")
        os.kill(process.pid, signal.SIGCONT)
        self.wait_for_steps(held + 20)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        self.assertIn("suspending after this step", error)
        run = self.place.json("runs")[0]["id"]
        data = self.place.json("show", run, "--steps")["data"]
        self.assertEqual([s["step"] for s in data], list(range(1, len(data) + 1)))
        self.assertLess(max(s["dt_ms"] for s in data), 1000 * stopped_s)

    def test_samples_lanes_and_parts_are_kept(self):
        run = self.place.json("train", *RECIPE, "--steps", 1500, "--sample-every", 750, "--sample-tokens", 20,
                              "--sample-prompt", "ROMEO:", "--save-every", 1000)
        shown = self.place.json("show", run["id"])
        self.assertEqual([s["step"] for s in shown["samples"]], [750, 1500])
        self.assertTrue(shown["samples"][0]["text"].startswith("ROMEO:"))
        self.assertGreater(len(shown["lanes"]), 0)
        self.assertGreater(shown["lanes"][-1]["resident_bytes"], 10 ** 7)
        self.assertGreater(shown["lanes"][-1]["process_cores"], 0)
        self.assertGreater(shown["peak_memory_bytes"], 10 ** 7)
        parts = shown["mean_ms"]
        slowest = max(step["dt_ms"] for step in self.place.json("show", run["id"], "--steps")["data"])
        self.assertLessEqual(sum(v for v in parts.values() if v), slowest)
        self.assertGreater(parts["backward"], 0)
        self.assertIsNone(parts["communication"])

    def test_samples_in_gpt2_tokens_need_a_tokenizer(self):
        data = self.place.path / "tokens.bin"
        data.write_bytes(b"".join((i * 7 % 290).to_bytes(2, "little") for i in range(5000)))
        recipe = [*TINY, "--data", data, "--steps", 2, "--sample-every", 2, "--sample-tokens", 8]
        status, _, error = self.place.run("train", *recipe)
        self.assertEqual(status, 2)
        self.assertIn("--tokenizer", error)
        run = self.place.json("train", *recipe, "--tokenizer", TOKENIZER, "--sample-prompt", "the")
        text = self.place.json("show", run["id"])["samples"][0]["text"]
        self.assertTrue(text.startswith("the"), text)
        self.assertGreater(len(text), 3)

    def test_weights_go_out_and_come_in(self):
        run = self.place.json("train", *RECIPE, "--tied-head", "--steps", 20, "--save-every", 20, "--eval-every", 20)
        for form, name in (("safetensors", "model.safetensors"), ("llmc", "model.bin")):
            file = self.place.path / name
            status, _, error = self.place.run("export", run["id"], "--format", form, "--out", file)
            self.assertEqual(status, 0, error)
            tuned = self.place.json("train", "--data", TEXT, "--batch", 4, "--seq", 32, "--weights", file, "--steps", 1,
                                    "--threads", 1, "--lr", "1e-9", "--eval-every", 1)
            self.assertEqual(tuned["params"], run["params"])
            self.assertAlmostEqual(tuned["val_loss_last"], run["val_loss_last"], places=4)
        # A run that started from a file resumes without it.
        saved = self.place.json("train", "--data", TEXT, "--batch", 4, "--seq", 32, "--weights", file, "--steps", 2,
                                "--threads", 1, "--save-every", 2)
        file.unlink()
        self.assertEqual(self.place.json("train", "--resume", saved["id"], "--steps", 4)["last_step"], 4)
        self.assertEqual(self.place.json("train", "--fork", saved["id"], "--steps", 6)["last_step"], 6)
        status, _, error = self.place.run("train", "--weights", TEXT, "--steps", 1)
        self.assertEqual(status, 1)
        self.assertIn(str(TEXT), error)

    def test_a_ladder_of_all_stages_runs_what_this_device_can_do(self):
        ladder = self.place.json("ladder", "--all", *TINY, "--data", TEXT, "--steps", 6)
        stages = {s["id"]: s for s in self.place.json("stages")}
        done = [r["stage"] for r in ladder["rungs"]]
        left_out = {s["id"]: s["reason"] for s in ladder["skipped"]}
        self.assertEqual(set(done) | set(left_out), set(stages))
        self.assertTrue(all(r["status"] == "finished" for r in ladder["rungs"]), ladder["rungs"])
        self.assertTrue(all(left_out.values()))
        self.assertEqual(done, [s for s in stages if s in done], "in ladder order")
        last_maths = 0  # the rung that a rung's loss is compared with
        for rung in ladder["rungs"]:
            kind = stages[rung["stage"]]["kind"]
            self.assertEqual(rung["loss_against"], 0 if kind == "check" else last_maths, rung)
            last_maths = rung["rung"] if kind == "changes-the-maths" else last_maths
        for stage in stages.values():
            if not stage["available"]:
                self.assertEqual(left_out[stage["id"]], stage["reason"])

    def test_rungs_alone_left_out_in_another_order_and_with_another_batch(self):
        alone = self.place.json("ladder", *TINY, "--steps", 3, "--only", "fused-adamw,flash-attention")
        self.assertEqual([r["changed"] for r in alone["rungs"][1:]],
                         ["optimizer adamw -> fused-adamw", "attention explicit -> scaled-dot-product"])
        self.assertEqual([r["stage"] for r in alone["rungs"]], ["baseline", "fused-adamw", "flash-attention"])
        without = self.place.json("ladder", *TINY, "--steps", 3, "--without", "ddp,grad-accumulation,bf16,bf16-matmul")
        self.assertNotIn("ddp", [r["stage"] for r in without["rungs"]])
        self.assertIn("compile", [r["stage"] for r in without["rungs"]])
        batch = self.place.json("ladder", *TINY, "--steps", 3, "--stages", "baseline,compile:batch=8")
        self.assertEqual(batch["rungs"][1]["changed"], "batch 4 -> 8, compile off -> on")
        self.assertEqual(batch["runs"][1]["tokens_per_step"], 8 * 32)

    def test_the_seeds_ladders_are_ready_to_be_climbed(self):
        small = ["--layers", 1, "--d-model", 32, "--heads", 2, "--vocab", 512, "--batch", 2, "--seq", 16, "--steps", 2,
                 "--device", "cpu"]
        for name, rungs in (("a100", 3), ("rtx3080", 15), ("mps-cuda", 8)):
            ladder = self.place.json("ladder", "--plan", name, *small)
            self.assertEqual(len(ladder["rungs"]) + len(ladder["skipped"]), rungs + (name == "a100"), ladder["skipped"])
            self.assertTrue(all(r["status"] == "finished" for r in ladder["rungs"]))
            self.assertTrue(any(r["seed_tokens_per_s"] for r in ladder["rungs"]))
        status, out, _ = self.place.run("ladder", "--plan", "a100", *small)
        self.assertEqual(status, 0)
        self.assertIn("seed tokens/s", out)
        self.assertEqual(self.place.run("ladder", "--plan", "a10")[0], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
