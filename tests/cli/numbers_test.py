"""Verdicts, flags and MFU on the command line, from a database that the test writes with plain SQL."""
import math
import random
import sqlite3
import unittest

from program import Workplace

FIGURES = {"mfu_star", "mfu", "hfu_star", "hfu"}


class Numbers(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        # Any writing command creates the file with its tables; this one needs no LibTorch.
        self.database = self.make_database()
        self.random = random.Random(1)

    def tearDown(self):
        self.database.close()
        self.place.close()

    def make_database(self):
        self.place.database.touch()
        status, _, err = self.place.run("runs", "--json")
        self.assertEqual(status, 0, err)
        return sqlite3.connect(self.place.database)

    def add_run(self, name, dt_ms, losses=None, hardware="NVIDIA A100", precision="bf16", tokens=4096, params=124439808,
                steps=200, noise=0.01, rung=0):
        row = self.database.execute(
            "insert into runs (name, status, source, created_at, tokens_per_step, params, device, hardware, precision, "
            "ladder_id, rung) values (?, 'finished', 'import', ?, ?, ?, 'cuda', ?, ?, null, ?)",
            (name, 1000.0 + rung, tokens, params, hardware, precision, rung))
        losses = losses or [11 - 3 * (1 - math.exp(-i / 50)) for i in range(steps)]
        self.database.executemany(
            "insert into steps (run_id, step, loss, dt_ns, tokens) values (?, ?, ?, ?, ?)",
            [(row.lastrowid, i + 1, losses[i], dt_ms * 1e6 * math.exp(noise * self.random.gauss(0, 1)), tokens)
             for i in range(steps)])
        self.database.commit()
        return row.lastrowid

    def test_compare_gives_intervals_and_verdicts(self):
        base = self.add_run("base", 100)
        twice = self.add_run("twice", 50, rung=1)
        again = self.add_run("again", 100, rung=2)
        slow = self.add_run("slow", 120, rung=3)
        noisy = self.add_run("noisy", 100, steps=10, noise=0.3, rung=4)
        compared = self.place.json("compare", base, twice, again, slow, noisy)
        self.assertEqual(compared["base"], base)
        self.assertEqual([r["verdict"] for r in compared["runs"]], ["faster", "same", "slower", "cannot-tell"])
        for run in compared["runs"]:
            low, high = run["ci95"]
            self.assertLess(low, run["speedup"])
            self.assertGreater(high, run["speedup"])
        first, second = compared["runs"][:2]
        self.assertAlmostEqual(first["speedup"], 2, delta=0.02)
        self.assertAlmostEqual(second["against_previous"], second["speedup"] / first["speedup"], places=9)
        loss = first["loss"]
        self.assertEqual((loss["verdict"], loss["max_gap"], loss["at_step"], loss["by"], loss["runs"]), ("same", 0, 1, "loss", 1))
        self.assertLess(loss["ci95"][0], loss["ci95"][1])
        self.assertEqual([(run["spread_from"], run["runs"]) for run in compared["runs"]], [("prior", 1)] * 4)
        self.assertEqual([run["needed_runs"] is None for run in compared["runs"]], [True, True, True, False])
        status, out, _ = self.place.run("compare", base, twice)
        self.assertEqual(status, 0)
        self.assertIn("faster", out)

    def test_the_baselines_loss_is_reached_by_its_own_kind_of_loss(self):
        losses = [5 - i / 100 for i in range(200)]
        base, run = self.add_run("base", 100, losses=losses), self.add_run("run", 100, losses=losses)
        self.database.execute("update steps set val_loss = 3 where run_id = ? and step in (10, 200)", (run,))
        self.database.commit()
        reached = self.place.json("compare", base, run)["runs"][0]["reached_base_loss"]
        self.assertEqual((reached["by"], reached["step"]), ("loss", 200))
        # The other way round, no training loss stands for a validation loss.
        self.assertIsNone(self.place.json("compare", run, base)["runs"][0]["reached_base_loss"])

    def test_runs_without_times_or_steps_are_compared_too(self):
        base, empty = self.add_run("base", 100), self.add_run("empty", 100, steps=0)
        other_empty = self.add_run("other empty", 100, steps=0)
        for pair in ((base, empty), (empty, base), (empty, other_empty)):
            compared, = self.place.json("compare", *pair)["runs"]
            self.assertEqual((compared["speedup"], compared["ci95"], compared["verdict"], compared["reached_base_loss"]),
                             (None, None, "cannot-tell", None))
            self.assertEqual((compared["loss"]["verdict"], compared["loss"]["max_gap"], compared["loss"]["at_step"], compared["loss"]["ci95"]),
                             ("not-comparable", None, None, None))
        self.assertIn("1.00 x", self.place.run("compare", base, empty)[1])
        self.assertNotIn("1.00 x", self.place.run("compare", empty, base)[1])

    def test_a_target_loss_is_told_in_words_too(self):
        base, run = self.add_run("base", 100), self.add_run("run", 100, noise=0, losses=[5 - i / 100 for i in range(200)])
        out = self.place.run("compare", base, run, "--target-loss", 4)[1]
        # The median of the last five is that of two steps before.
        self.assertIn(f"run {run}, target: reached (median of five losses) at step 103, after 10 s and 422 k tokens", out)
        reached = self.place.json("compare", base, run, "--target-loss", 4)["runs"][0]["reached_base_loss"]
        self.assertEqual((reached["step"], reached["tokens"]), (103, 103 * 4096))
        self.assertAlmostEqual(reached["seconds"], 10.3, places=6)
        target = self.place.json("compare", base, run, "--target", 4)["target"]
        self.assertEqual(target["loss"], 4)
        self.assertEqual([(each["id"], each["by"]) for each in target["runs"]], [(base, "loss"), (run, "loss")])
        self.assertEqual(target["runs"][1]["reached"], reached)
        self.assertIn("target: not reached (median of five losses)", self.place.run("compare", base, run, "--target-loss", 1)[1])
        self.assertNotIn("target", self.place.json("compare", base, run), "a target that nobody asked for")
        self.assertNotIn("target", self.place.run("compare", base, run)[1])

    def test_long_runs_are_compared_by_excerpts(self):
        steps = 300_000

        def add(name, dt_ms, loss_at):
            run = self.add_run(name, dt_ms, steps=0)
            self.database.executemany(
                "insert into steps (run_id, step, loss, dt_ns, tokens) values (?, ?, ?, ?, 4096)",
                ((run, i, loss_at(i), dt_ms * 1e6 * (1 + 0.01 * math.sin(i))) for i in range(1, steps + 1)))
            self.database.commit()
            return run

        falling = lambda i: 10 - 5 * i / steps
        base, twice = add("base", 100, falling), add("twice", 50, falling)
        lost = add("lost", 100, lambda i: falling(i) if i != 1000 else float("inf"))
        compared = self.place.json("compare", base, twice, lost)
        self.assertLess(compared["base_excerpt_steps"], steps)
        fast, diverged = compared["runs"]
        self.assertLess(fast["excerpt_steps"], steps)
        self.assertAlmostEqual(fast["speedup"], 2, places=3)
        self.assertEqual((fast["verdict"], fast["loss"]["verdict"], fast["loss"]["max_gap"]), ("faster", "same", 0))
        # Sums use all steps rather than the excerpt: the base's end is reached with the last steps.
        self.assertAlmostEqual(fast["reached_base_loss"]["step"], steps, delta=2)
        self.assertAlmostEqual(fast["reached_base_loss"]["seconds"], 50 * steps / 1000, delta=5)
        # A step that the excerpt leaves out still counts.
        self.assertEqual((diverged["loss"]["verdict"], diverged["loss"]["at_step"]), ("diverged", 1000))
        self.assertIn("evenly spaced steps of 300,000", self.place.run("compare", base, twice)[1])
        self.assertEqual(self.place.run("compare", base, lost, "--gate")[0], 13)

    def test_a_gain_with_another_batch_is_split(self):
        ladder = self.database.execute("insert into ladders (name, created_at) values ('l', 1)").lastrowid
        # t = 20 ms + 0.01 ms a token, and a stage that halves both.
        base = self.add_run("base", 60.96, tokens=4096, noise=0)
        run = self.add_run("run", 50.96, tokens=8192, noise=0, rung=1)
        self.database.execute("update runs set ladder_id = ?, setup_ms = 1000, stage = name", (ladder,))
        self.database.commit()
        compared, = self.place.json("compare", base, run)["runs"]
        self.assertAlmostEqual(compared["tokens_ratio"] / compared["step_time_ratio"], compared["speedup"], places=9)
        low, high = compared["batch"]["equal_batch"]
        self.assertAlmostEqual(low, 60.96 / 50.96, places=6)
        self.assertAlmostEqual(high, compared["speedup"], places=6)
        self.assertIsNone(compared["batch"]["third_run"])
        self.assertEqual(compared["break_even_steps"], 100)
        self.assertIn("Two runs can't separate", self.place.run("compare", base, run)[1])
        third = self.add_run("third", 30.48, tokens=4096, noise=0, rung=2)
        self.database.execute("update runs set ladder_id = ?, stage = 'run' where id = ?", (ladder, third))
        self.database.commit()
        compared, = self.place.json("compare", base, run)["runs"]
        self.assertEqual(compared["batch"]["third_run"], third)
        self.assertAlmostEqual(compared["batch"]["equal_batch"][0], 2, places=6)

    def test_energy_is_told_where_power_was_looked_at(self):
        run = self.add_run("run", 100, noise=0)
        self.assertIsNone(self.place.json("show", run)["energy"])
        self.database.executemany("insert into lanes (run_id, at, step, gpu_power_w) values (?, ?, ?, 300)",
                                  [(run, 100 + i / 2, 5 * i) for i in range(41)])
        self.database.commit()
        energy = self.place.json("show", run)["energy"]
        self.assertAlmostEqual(energy["wh"], 300 * 20 / 3600, places=9)
        self.assertAlmostEqual(energy["joules_per_token"], 300 / 40960, places=9)
        self.assertAlmostEqual(energy["tokens_per_s_per_w"], 40960 / 300, places=6)

    def test_a_gate_ends_with_what_it_found(self):
        base = self.add_run("base", 100)
        gates = {0: self.add_run("fast", 50), 10: self.add_run("slow", 120),
                 11: self.add_run("noisy", 100, steps=10, noise=0.3), 12: self.add_run("impossible", 1),
                 13: self.add_run("worse", 50, losses=[11 - i / 1000 for i in range(200)])}
        for status, run in gates.items():
            self.assertEqual(self.place.run("compare", base, run, "--gate")[0], status)
            self.assertEqual(self.place.run("compare", base, run)[0], 0, "a plain listing is no gate")

    def test_check_tells_what_cannot_be_and_why(self):
        honest = self.add_run("honest", 100)
        impossible = self.add_run("impossible", 2, hardware="RTX 3080", rung=1)
        nowhere = self.add_run("nowhere", 100, hardware=None, rung=2)
        checked = {run["id"]: run for run in self.place.json("check")}
        self.assertEqual([f["id"] for f in checked[honest]["flags"]], ["not-repeated"])
        flag = checked[impossible]["flags"][0]
        self.assertEqual(set(flag), {"id", "why"})
        self.assertEqual(flag["id"], "impossible-throughput")
        self.assertIn("x 6 x 124,439,808 parameters", flag["why"])
        self.assertIn("unknown-hardware", [f["id"] for f in checked[nowhere]["flags"]])
        self.assertEqual(self.place.run("check", honest, "--json")[0], 0)
        self.assertEqual(self.place.run("check", honest, impossible, "--json")[0], 12)
        self.assertEqual(self.place.run("check", 999)[0], 1)
        runs = {run["id"]: run for run in self.place.json("runs")}
        self.assertIn("impossible-throughput", runs[impossible]["flags"])
        self.assertAlmostEqual(runs[honest]["mfu"], 6 * 124439808 * runs[honest]["tokens_per_s"] / 312e12, places=9)
        self.assertEqual(runs[honest]["mfu_convention"], "6N")
        self.assertIsNone(runs[nowhere]["mfu"])
        self.assertEqual([r["id"] for r in self.place.json("runs", "--filter", "flags~impossible")], [impossible])
        self.assertEqual([r["id"] for r in self.place.json("runs", "--filter", "trust=impossible")], [impossible])

    def test_no_factor_over_or_of_an_impossible_run_reads_faster(self):
        honest, impossible = self.add_run("honest", 100), self.add_run("impossible", 1, rung=1)
        slower = self.add_run("slower", 120, rung=2)
        self.assertEqual((self.place.json("show", honest)["trust"], self.place.json("show", impossible)["trust"]),
                         ("trusted", "impossible"))
        compared = self.place.json("compare", honest, impossible, slower)
        self.assertEqual((compared["base_trust"], [(run["trust"], run["verdict"]) for run in compared["runs"]]),
                         ("trusted", [("impossible", "cannot-tell"), ("trusted", "slower")]))
        table = self.place.run("compare", honest, impossible)[1]
        self.assertNotIn("faster", table)
        self.assertIn("impossible", table.splitlines()[2])
        self.assertEqual(self.place.json("compare", impossible, honest)["runs"][0]["verdict"], "cannot-tell")
        over_impossible = self.place.run("compare", impossible, honest)[1]
        self.assertIn("baseline impossible", over_impossible)
        self.assertEqual(self.place.json("compare", impossible, honest)["base_trust"], "impossible")
        self.assertEqual(self.place.run("compare", impossible, honest, "--gate")[0], 12)

    def test_published_mfu_is_recomputed_row_by_row(self):
        rows = self.place.json("mfu", "--published")
        self.assertEqual(len(rows), 87)
        for row in rows:
            self.assertLessEqual({"model", "seq_len", "gpus", "gpu", "params", "samples_per_s", "published", "computed"},
                                 set(row))
            self.assertEqual(set(row["published"]), FIGURES)
            self.assertEqual(set(row["computed"]), FIGURES)
            if row["note"] is None:
                for figure in FIGURES:
                    self.assertEqual(f"{row['computed'][figure]:.4f}", f"{row['published'][figure]:.4f}")
        self.assertEqual(len(self.place.run("mfu", "--published")[1].splitlines()), 88)

    def test_the_calculator_names_each_convention(self):
        shape = ["--params", 124439808, "--layers", 12, "--d-model", 768, "--seq", 1024, "--vocab", 50257]
        answer = self.place.json("mfu", *shape, "--throughput", 1e6, "--gpus", 8, "--gpu", "a100")
        flops = {row["convention"]: row["flops_per_token"] for row in answer["conventions"]}
        self.assertEqual([round(flops[c] / 1e5) / 10 for c in ("6N", "llm.c", "nanoGPT", "PaLM/Mosaic")],
                         [746.6, 803.5, 855.2, 859.9])
        for row in answer["conventions"]:
            self.assertAlmostEqual(row["mfu"], row["flops_per_token"] * 1e6 / (8 * 312e12), places=12)
        same = self.place.json("mfu", *shape, "--throughput", 1e6, "--gpus", 8, "--peak-tflops", 312)
        self.assertEqual(same["conventions"], answer["conventions"])
        self.assertEqual(self.place.run("mfu")[0], 2)
        self.assertEqual(self.place.run("mfu", "--params", 5, "--gpu", "toaster")[0], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
