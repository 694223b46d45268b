"""The contract of the command line: fields, exit statuses, stdout and stderr."""
import csv
import io
import json
import math
import os
import signal
import sqlite3
import subprocess
import time
import unittest

from program import PATIENCE_S, PROGRAM, TEXT, TINY, Workplace

RUN_FIELDS = ("id name ladder stage repeat status source source_path steps first_step last_step loss_first loss_last "
              "loss_min val_loss_last val_loss_min dt_ms_median tokens_per_step tokens_per_s warmup_steps params "
              "model_flops_per_token mfu mfu_convention device hardware precision sync flags").split()


class Commands(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()

    def tearDown(self):
        self.place.close()

    def test_a_ladder_is_measured_and_kept(self):
        ladder = self.place.json("ladder", *TINY, "--data", TEXT, "--steps", 30,
                                 "--stages", "baseline,flash-attention,fused-adamw")
        self.assertEqual([r["stage"] for r in ladder["rungs"]], ["baseline", "flash-attention", "fused-adamw"])
        for rung in ladder["rungs"]:
            self.assertGreater(rung["tokens_per_s"], 0)
            self.assertEqual(rung["status"], "finished")
            self.assertEqual(rung["loss"]["verdict"], "same")
        self.assertEqual(ladder["rungs"][0]["speedup"], 1)
        self.assertEqual(ladder["rungs"][1]["changed"], "attention explicit -> scaled-dot-product")

        runs = self.place.json("runs")
        self.assertEqual(len(runs), 3)
        for run in runs:
            self.assertEqual(sorted(set(RUN_FIELDS) - set(run)), [])
            self.assertEqual((run["status"], run["steps"], run["first_step"], run["last_step"]), ("finished", 30, 1, 30))
            self.assertEqual(run["tokens_per_step"], 4 * 32)
            self.assertAlmostEqual(run["tokens_per_s"], 4 * 32 * 1000 / run["dt_ms_median"], delta=1)
            self.assertEqual(run["model_flops_per_token"], 6 * run["params"])
            self.assertEqual((run["device"], run["sync"]), ("cpu", "device"))
            self.assertAlmostEqual(run["loss_first"], math.log(256), delta=0.5)

        shown = self.place.json("show", runs[0]["id"], "--steps")
        self.assertEqual([s["step"] for s in shown["data"]], list(range(1, 31)))
        self.assertEqual(set(shown["data"][0]),
                         {"step", "loss", "val_loss", "dt_ms", "tokens", "tokens_per_s", "lr", "grad_norm"})
        self.assertTrue(all(s["grad_norm"] > 0 for s in shown["data"]))

        compared = self.place.json("compare", runs[0]["id"], runs[1]["id"], runs[2]["id"])
        self.assertEqual(compared["base"], runs[0]["id"])
        first = compared["runs"][0]
        self.assertEqual(set(first["loss"]), {"verdict", "max_gap", "at_step", "ci95", "tolerance", "by", "runs"})
        if first["ci95"]:
            self.assertLess(first["ci95"][0], first["speedup"])
            self.assertGreater(first["ci95"][1], first["speedup"])
            self.assertIn(first["verdict"], ("faster", "same", "slower", "cannot-tell"))
        else:  # real clocks beside other programs may scatter widely; numbers_test has steady ones
            self.assertEqual(first["verdict"], "cannot-tell")
        self.assertAlmostEqual(first["speedup"], runs[1]["tokens_per_s"] / runs[0]["tokens_per_s"], places=6)

        with sqlite3.connect(self.place.database) as database:
            self.assertEqual(database.execute("select count(*) from steps").fetchone()[0], 90)
            worst = database.execute(
                "select max(abs(tokens_per_s - tokens * 1000.0 / dt_ms)) from steps").fetchone()[0]
            self.assertLess(worst, 1e-6)

    def test_operators_add_up_to_a_step_and_tell_what_moved(self):
        ladder = self.place.json("ladder", *TINY, "--steps", 20, "--stages", "baseline,fused-adamw")
        base, fused = [rung["runs"][0] for rung in ladder["rungs"]]
        listed = self.place.json("operators", base, fused)
        self.assertEqual([r["id"] for r in listed], [base, fused])
        for run in listed:
            self.assertEqual(run["steps"], 2)
            self.assertAlmostEqual(sum(o["self_ms"] for o in run["operators"]), run["step_ms"], places=6)
            self.assertAlmostEqual(sum(k["ms"] for k in run["kinds"]), run["step_ms"], places=6)
            self.assertEqual({o["part"] for o in run["operators"]}, {"data", "forward", "backward", "optimiser"})
            products = [o for o in run["operators"] if o["name"] in ("aten::mm", "aten::addmm", "aten::bmm")]
            self.assertTrue(all(o["flops"] > 0 and o["shapes"] for o in products))
        updates = [{o["name"] for o in run["operators"] if o["part"] == "optimiser"} for run in listed]
        self.assertIn("aten::addcdiv_", updates[0])
        self.assertIn("aten::_fused_adamw_", updates[1])
        status, out, _ = self.place.run("operators", base)
        self.assertEqual(status, 0)
        self.assertIn("FLOP/s", out)
        status, out, _ = self.place.run("operators", base, fused)
        change = ["change"] if all(run["comparable"] for run in listed) else []
        self.assertEqual(out.splitlines()[3].split(), ["run", str(base), "run", str(fused), *change])
        for run in listed:  # scaled to the measured step, or said to be not comparable
            self.assertAlmostEqual(run["step_ms"], run["measured_ms" if run["comparable"] else "profiled_ms"], places=6)
            self.assertEqual(run["comparable"], 1 / 1.5 <= run["measured_ms"] / run["profiled_ms"] <= 1.5)

    def test_a_run_without_a_profile_says_why(self):
        run = self.place.json("train", *TINY, "--steps", 5)
        status, out, err = self.place.run("operators", run["id"])
        self.assertEqual((status, out), (1, ""))
        self.assertIn("fewer than ten steps", err)
        listed = self.place.json("operators", run["id"])
        self.assertEqual((listed[0]["steps"], listed[0]["step_ms"], listed[0]["operators"]), (0, None, []))

    def test_training_with_validation_and_the_synthetic_floor(self):
        run = self.place.json("train", *TINY, "--steps", 20, "--eval-every", 10, "--name", "mine")
        self.assertEqual(run["name"], "mine")
        self.assertGreater(run["val_loss_last"], 0)
        steps = self.place.json("show", "mine", "--steps")["data"]
        self.assertEqual([s["step"] for s in steps if s["val_loss"] is not None], [10, 20])

    def test_gpt2_is_published_whole_unless_told_otherwise(self):
        small = ["train", "--model", "gpt2", "--layers", 1, "--d-model", 64, "--heads", 2, "--batch", 1, "--seq", 16, "--steps", 1]
        tied = (50257 + 16) * 64 + 12 * 64 * 64 + 13 * 64 + 2 * 64
        self.assertEqual(self.place.json(*small)["params"], tied)
        self.assertEqual(self.place.json(*small, "--untied-head")["params"], tied + 50257 * 64)
        self.assertEqual(self.place.json(*small, "--vocab", 300)["params"], tied - (50257 - 300) * 64)
        nano = self.place.json("train", *TINY, "--steps", 1, "--tied-head", "--init", "gpt2")
        self.assertAlmostEqual(nano["loss_first"], math.log(256), delta=0.05)
        self.assertEqual(self.place.run("train", "--tied-head", "--untied-head")[0], 2)
        self.assertEqual(self.place.run("train", "--init", "zeros")[0], 2)

    def test_lists_and_filters(self):
        self.assertEqual(self.place.json("runs"), [])
        self.assertFalse(self.place.database.exists(), "a command that only reads makes no file")
        self.place.json("train", *TINY, "--steps", 5)
        self.assertEqual(len(self.place.json("runs", "--filter", "status=finished steps=5")), 1)
        self.assertEqual(self.place.json("runs", "--filter", "steps>5"), [])
        stages = self.place.json("stages")
        self.assertEqual([s["id"] for s in stages], [
            "baseline", "overfit", "weight-tying", "init-scaling", "tf32", "bf16-matmul", "bf16", "compile",
            "flash-attention", "padded-vocab", "gpt3-adamw", "cosine-lr", "decay-groups", "fused-adamw", "compile-max",
            "grad-accumulation", "ddp"])
        for stage in stages:
            self.assertEqual(set(stage), {"id", "title", "why", "kind", "available", "reason"})
            self.assertEqual(stage["available"], stage["reason"] is None)
        doctor = self.place.json("doctor")
        self.assertGreater(doctor["cores"], 0)
        self.assertTrue(doctor["libtorch"].startswith("2."))

    def test_a_ladder_says_what_this_device_cannot_do(self):
        ladder = self.place.json("ladder", *TINY, "--steps", 4, "--device", "cpu", "--stages", "baseline,tf32,fused-adamw")
        self.assertEqual([r["stage"] for r in ladder["rungs"]], ["baseline", "fused-adamw"])
        self.assertEqual([s["id"] for s in ladder["skipped"]], ["tf32"])
        self.assertIn("cpu", ladder["skipped"][0]["reason"])

    def test_without_a_display_a_bare_call_prints_the_help(self):
        status, out, err = self.place.run()
        self.assertEqual(status, 2)
        self.assertIn("Usage", out)
        self.assertIn("no display", err)
        self.assertFalse(self.place.database.exists(), "nothing is trained unasked")

    def test_interrupt_ends_cleanly_and_keeps_every_step(self):
        process = self.place.start("ladder", *TINY, "--steps", 1000000)
        deadline = time.time() + PATIENCE_S
        while time.time() < deadline and len(self.steps()) < 20:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)
        runs = self.place.json("runs")
        self.assertEqual({r["status"] for r in runs}, {"stopped"})
        self.assertGreaterEqual(runs[0]["steps"], 20)
        self.assertEqual(runs[0]["steps"], runs[0]["last_step"])

    def test_a_loss_that_is_not_a_number_fails_the_run_and_keeps_its_steps(self):
        status, out, _ = self.place.run("train", *TINY, "--steps", 200, "--lr", "1e30", "--json")
        run = json.loads(out)
        self.assertEqual((status, run["status"]), (1, "failed"))
        self.assertRegex(run["reason"], r"loss is (NaN|infinite) at step \d+")
        last = self.place.json("show", run["id"], "--steps")["data"][-1]
        self.assertIn(last["loss"], ("NaN", "Infinity", "-Infinity"))

    def test_help_and_version(self):
        for arguments in (["--help"], ["train", "--help"], ["--version"]):
            status, out, _ = self.place.run(*arguments)
            self.assertEqual(status, 0)
            self.assertIn("stepladder", out.lower())

    def test_passes_are_timed_call_by_call(self):
        shape = ["--device", "cpu", "--batch", "1", "--seq", "8", "--vocab", "100"]
        float32 = [*shape, "--precision", "fp32"]  # the grid below has bf16, which some CPUs take seconds for
        rows = self.place.json("profile", *float32, "--steps", "2", "--warmup", "1")
        self.assertEqual({row["computation"] for row in rows}, {"forward", "backward", "forward_backward"})
        self.assertIn("fp32", {row["precision"] for row in rows})
        for row in rows:
            self.assertEqual((row["warmup"], row["steps"]), (1, 2))
            self.assertAlmostEqual(row["total_ms"], 2 * row["mean_ms"])
            self.assertAlmostEqual(row["median_ms"], row["mean_ms"])  # of two
            self.assertAlmostEqual(row["std_ms"], (row["max_ms"] - row["min_ms"]) / 2)
            self.assertGreater(row["min_ms"], 0)
            self.assertEqual(len(row["times_ms"]), 2)
        self.assertEqual(rows, sorted(rows, key=lambda row: row["mean_ms"]))

        # The whole grid of another architecture, once.
        code, out, err = self.place.run("profile", "--model", "seed-small", *shape, "--csv", "--steps", "1")
        table = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(code, 0, err)
        self.assertEqual(len(table), 12 if any(row["precision"] == "bf16" for row in table) else 6)
        self.assertEqual({row["warmup"] for row in table}, {"0", "1"})
        self.assertTrue(all(row["steps"] == "1" and row["min_ms"] == row["mean_ms"] for row in table))
        self.assertIn("forward and backward take", err)

        # Both are kept, and the second's first round is all that a second allows.
        kept = self.place.json("profile", "passes")
        self.assertEqual([(each["model"], each["batch"], each["seq"], each["flags"]) for each in kept],
                         [("small", 1, 8, []), ("seed-small", 1, 8, [])])
        again = self.place.json("profile", "passes", 1)
        self.assertEqual([row["times_ms"] for row in again["rows"]], [row["times_ms"] for row in rows])
        status, out, err = self.place.run("profile", *float32, "--warmup", "1", "--no-sync", "--steps", "3", "--time", "0.01")
        self.assertEqual(status, 0, err)
        self.assertIn("Flagged no-sync", out)
        self.assertIn(f"{len(rows)} of {len(rows)} rows have fewer than 3 calls", out)
        compared = self.place.json("profile", "passes", 1, 3)
        self.assertEqual({row["warmup"] for row in compared["rows"]}, {1})
        self.assertEqual(len(compared["rows"]), len(rows))
        self.assertIn("no-sync", compared["warning"])
        for row in compared["rows"]:
            self.assertAlmostEqual(row["speedup"], row["before_ms"] / row["after_ms"])
        # One sentence says what the two clocks show; as tables for papers they have the same numbers.
        self.assertIn("one is flagged no-sync", self.place.run("profile", "passes", 1, 3, "--markdown")[1])
        csv_rows = self.place.run("profile", "passes", 1, 3, "--csv")[1].splitlines()
        self.assertEqual([float(line.split(",")[5]) for line in csv_rows[1:]], [row["speedup"] for row in compared["rows"]])
        markdown = self.place.run("profile", "passes", 1, "--markdown")[1]
        self.assertEqual(len([line for line in markdown.splitlines() if line.startswith("|")]), 2 + len(rows))
        self.assertEqual(self.place.run("profile", "passes", 1, "--markdown", "--csv")[0], 2)
        self.assertEqual(self.place.json("profile", "passes", 3)["flags"], ["no-sync"])
        self.assertEqual(self.place.run("profile", "passes", 3, "--remove")[0], 0)
        self.assertEqual(self.place.run("profile", "passes", 3)[0], 1)
        self.assertEqual(len(self.place.json("profile", "passes")), 2)

        # One precision alone, since a CPU without bf16 instructions takes minutes for the other.
        alone = self.place.json("profile", *shape, "--precision", "fp32", "--warmup", "1", "--steps", "1", "--no-keep")
        self.assertEqual([row["precision"] for row in alone], ["fp32"] * 3)

        for wrong in (["--model", "huge"], ["--precision", "fp8"], ["--steps", "0"], ["--spread", "0"], ["--time", "-1"], ["--warmup", "-1"], ["--seq", "many"], ["--csv", "--json"]):
            code, out, err = self.place.run("profile", *wrong)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(wrong[0], err)

    def test_the_seeds_model_trains_and_resumes(self):
        small = ["train", "--model", "seed-small", "--layers", 2, "--d-model", 32, "--heads", 2, "--batch", 4, "--seq", 32]
        run = self.place.json(*small, "--steps", 6, "--save-every", 3)
        width, layers = 32, 2
        self.assertEqual(run["params"], 2 * 10000 * width + 32 * width + layers * (12 * width * width + 2 * width) + width)
        with sqlite3.connect(self.place.database) as database:
            recipe = json.loads(database.execute("SELECT recipe FROM runs").fetchone()[0])
        self.assertEqual((recipe["seed"], recipe["model"]), (20230310, "seed-small"))
        longer = self.place.json("train", "--resume", run["id"], "--steps", 9)
        whole = self.place.json(*small, "--steps", 9)
        self.assertEqual(longer["loss_last"], whole["loss_last"])
        status, _, err = self.place.run(*small, "--stage", "compile", "--device", "cpu")
        self.assertEqual(status, 2)
        self.assertIn("LayerNorm", err)

    def test_a_broken_hardware_table_ends_no_command(self):
        self.place.json("train", *TINY, "--steps", 2)
        table = self.place.path / "config" / "stepladder" / "hardware.csv"
        table.parent.mkdir(parents=True)
        columns = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source"
        for text, said in ((f"{columns}\nMine,,fast,,,,,,,me\n", "line 2, has 'fast' instead of a number; this line is ignored"),
                           ("junk\n", "line 1, does not name the columns"), ("\0\xff" * 1000, "the file is ignored")):
            table.write_text(text)
            for command in (["runs"], ["show", 1], ["check"], ["doctor"], ["train", *TINY, "--steps", 1]):
                status, _, error = self.place.run(*command)
                self.assertEqual(status, 0, error)
                self.assertIn(f"stepladder: {table}", error)
                self.assertIn(said, error)
                self.assertEqual(error.count("is ignored"), 1, error)

    def test_a_probe_gives_this_machine_a_peak(self):
        self.assertIsNone(self.place.json("doctor")["probe"])
        run = self.place.json("train", *TINY, "--device", "auto", "--steps", 6)
        flags = lambda: {f["id"] for f in self.place.json("check", run["id"])[0]["flags"]}
        unknown = "unknown-hardware" in flags()

        table = self.place.path / "config" / "stepladder" / "hardware.csv"
        table.parent.mkdir(parents=True)
        columns = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source"
        name = run["hardware"] + ("" if unknown else " (measured here)")
        lines = ["# mine", columns, "My card,,1,,,,,,,me", f"{name},,123456,,,,,,,measured here"]

        # A mistake in the user's table is reported before the probe, and the table stays unchanged.
        table.write_text("\n".join(lines) + "\nMine,,fast,,,,,,,me\n")
        status, _, err = self.place.run("doctor", "--probe")
        self.assertEqual(status, 1)
        self.assertIn("hardware.csv, line 5", err)
        self.assertEqual(len(table.read_text().splitlines()), 5)

        # An interrupted probe changes nothing, a whole one replaces its own row.
        table.write_text("\n".join(lines) + "\n")
        process = self.place.start("doctor", "--probe")
        process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(table.read_text().splitlines(), lines)
        probe = self.place.json("doctor", "--probe")["probe"]
        self.assertEqual(probe["hardware"], run["hardware"])
        self.assertEqual(probe["row"], name)
        self.assertEqual(probe["file"], str(table))
        self.assertEqual([p["precision"] for p in probe["peaks"] if p["precision"] in ("fp32", "bf16")], ["fp32", "bf16"])
        for peak in probe["peaks"]:
            self.assertGreater(peak["tflops"], 0)
            self.assertGreaterEqual(peak["fastest_tflops"], peak["tflops"])
            self.assertGreaterEqual(peak["samples"], 5)
        self.assertGreater(probe["bandwidth_gb_s"], 0)
        now = table.read_text().splitlines()
        self.assertEqual((now[:3], len(now)), (lines[:3], 4))
        row = now[3].split(",")
        self.assertEqual((row[0], row[-1]), (name, "measured here"))
        kept = probe["peaks"][0]["fastest_tflops" if probe["cpu_share"] < 0.9 else "tflops"]
        self.assertAlmostEqual(float(row[2]) / kept, 1, places=2)

        self.assertNotIn("unknown-hardware", flags())
        shown = self.place.json("show", run["id"])
        if unknown:
            flops = shown["model_flops_per_token"] * shown["tokens_per_s"]
            self.assertAlmostEqual(shown["mfu"], flops / (float(row[2]) * 1e12), places=6)

    def steps(self):
        try:
            with sqlite3.connect(f"file:{self.place.database}?mode=ro", uri=True) as database:
                return database.execute("select step from steps").fetchall()
        except sqlite3.OperationalError:
            return []


class Screenshot(unittest.TestCase):
    def test_every_view_in_both_themes_without_a_display(self):
        place = Workplace()
        self.addCleanup(place.close)
        status, _, err = place.run("screenshot", "--view", "ladder", "--out", place.path / "x.png")
        if status != 0 and "no window can be opened" in err:
            self.skipTest("no desktop or no OSMesa here: " + err.strip())
        for view in ("launch", "live", "ladder", "history", "advisor"):  # the last is profile by its old name
            for theme in ("dark", "light"):
                out = place.path / f"{view}-{theme}.png"
                status, _, err = place.run("screenshot", "--view", view, "--theme", theme, "--size", "1280x720", "--out", out)
                self.assertEqual(status, 0, err)
                data = out.read_bytes()
                self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
                self.assertEqual((int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")), (1280, 720))
                self.assertGreater(len(data), 5000, "an empty picture")


if __name__ == "__main__":
    unittest.main(verbosity=2)
