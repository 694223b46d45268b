"""Rungs of one's own, and sweeps, from the command line."""
import json
import sqlite3
import unittest

from program import TINY, Workplace

QUICK = [*TINY, "--steps", 3]


class Sweep(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def refuse(self, *arguments):
        """The message of a command that must fail as wrong usage, and train nothing."""
        status, out, error = self.place.run(*arguments)
        self.assertEqual((status, out), (2, ""), error)
        if self.place.database.exists():
            self.assertEqual(self.place.json("runs"), [])
        return error

    def rows(self, query, *values):
        with sqlite3.connect(self.place.database) as database:
            return database.execute(query, values).fetchall()

    def complaint(self, *arguments):
        """The message of a command that must fail as wrong usage."""
        status, out, error = self.place.run(*arguments)
        self.assertEqual((status, out), (2, ""), error)
        return error

    def test_every_combination_is_trained_and_seeds_are_its_repeats(self):
        sweep = self.place.json("sweep", *QUICK, "--over", "lr=1e-3,3e-3", "--over", "seed=1,2", "--over", "batch=2,4",
                                "--name", "grid")
        self.assertEqual(sweep["name"], "grid")
        self.assertEqual(sweep["over"], {"lr": ["1e-3", "3e-3"], "seed": ["1", "2"], "batch": ["2", "4"]})
        self.assertEqual([r["over"] for r in sweep["rungs"]],
                         [{"lr": lr, "batch": batch} for lr in (1e-3, 3e-3) for batch in (2, 4)])
        self.assertEqual([len(r["runs"]) for r in sweep["rungs"]], [2, 2, 2, 2])
        self.assertEqual([(r["over"]["lr"], r["over"]["batch"], r["over"]["seed"]) for r in sweep["runs"]],
                         [(lr, batch, seed) for lr in (1e-3, 3e-3) for batch in (2, 4) for seed in (1, 2)])
        self.assertEqual([r["tokens_per_step"] for r in sweep["runs"]], [64, 64, 128, 128] * 2)
        losses = {r["id"]: r["loss_last"] for r in sweep["runs"]}
        self.assertEqual(len(set(losses.values())), 8, "each run has its own recipe")
        for rung in sweep["rungs"]:
            last = [losses[run] for run in rung["runs"]]
            self.assertEqual((rung["finished"], rung["status"]), (2, "finished"))
            self.assertAlmostEqual(rung["loss_last"]["mean"], sum(last) / 2)
            self.assertEqual((rung["loss_last"]["low"], rung["loss_last"]["high"]), (min(last), max(last)))
            self.assertIsNone(rung["val_loss_last"]["mean"])

        status, out, error = self.place.run("sweep", *QUICK, "--over", "lr=1e-3,3e-3", "--repeats", 2)
        self.assertEqual(status, 0, error)
        lines = out.splitlines()
        self.assertEqual(lines[0].split()[:4], ["lr", "runs", "loss", "range"])
        self.assertEqual([line.split()[:2] for line in lines[1:3]], [["0.001", "2"], ["0.003", "2"]])
        self.assertRegex(lines[-1], r"^loss: Lowest at lr 0\.00[13]: .* \(.* - .*, 2 runs\)")

    def test_the_results_of_a_sweep_are_there_afterwards(self):
        trained = self.place.json("sweep", *QUICK, "--over", "lr=1e-3,3e-3", "--over", "seed=1,2", "--name", "kept", "--steps", 8,
                                  "--target", 100)
        again = self.place.json("sweep", "--of", "kept", "--target", 100)
        self.assertEqual([rung["results"] for rung in again["rungs"]], [rung["results"] for rung in trained["rungs"]])
        self.assertEqual([rung["over"] for rung in again["rungs"]], [{"lr": 1e-3}, {"lr": 3e-3}])
        first = again["rungs"][0]["results"]
        self.assertEqual((first["target_steps"]["mean"], first["target_steps"]["runs"]), (5, 2), "the median of the last five losses")
        never = self.place.json("sweep", "--of", "kept", "--target", 0.001)["rungs"][0]["results"]["target_steps"]
        self.assertEqual((never["mean"], never["runs"], never["left_out"]), (None, 0, 2))
        self.place.json("ladder", *QUICK, "--stages", "fused-adamw", "--name", "rungs")
        self.assertIn("isn't a sweep", self.place.run("sweep", "--of", "rungs")[2])

    def test_the_table_doubts_what_json_doubts(self):
        self.place.json("sweep", *QUICK, "--over", "lr=1e-3,3e-3", "--name", "kept", "--steps", 8)
        with sqlite3.connect(self.place.database) as database:
            database.execute("UPDATE runs SET sync = 'none', device = 'cuda' WHERE rung = 1")
        doubted = [rung["trust"] for rung in self.place.json("sweep", "show", "kept")["rungs"]]
        self.assertEqual(doubted[1], "doubtful")
        status, out, error = self.place.run("sweep", "show", "kept")
        self.assertEqual(status, 0, error)
        lines = out.splitlines()
        self.assertEqual(lines[0].split()[-1], "trust")
        self.assertEqual(lines[2].split()[-1], "doubtful")
        self.assertIn("lr 0.003, no-sync: ", out)

    def test_a_list_for_one_value_and_other_programs_options_lead_to_over(self):
        self.assertIn("`stepladder sweep --over batch=2,4` trains each", self.refuse("sweep", "--batch", "2,4", "--over", "lr=1,2"))
        self.assertIn("`stepladder sweep --over lr=1e-3,3e-4` trains each", self.refuse("train", "--lr", "1e-3,3e-4"))
        self.assertIn("did you mean --over?", self.refuse("sweep", "--vary", "lr=1,2"))
        self.assertNotIn("--over", self.refuse("import", "--vary", "lr=1,2"))

    def test_stages_apply_to_every_run(self):
        sweep = self.place.json("sweep", *QUICK, "--over", "lr=1e-3,3e-3", "--stage", "fused-adamw,weight-tying")
        for run in sweep["runs"]:
            recipe = json.loads(self.rows("select recipe from runs where id = ?", run["id"])[0][0])
            self.assertEqual((recipe["optimizer"], recipe["tied_head"]), ("fused-adamw", True))
        self.assertIn("did you mean fused-adamw?", self.complaint("sweep", *QUICK, "--over", "lr=1,2", "--stage", "fused-adam"))

    def test_seeds_are_the_repeats_of_a_ladders_rungs(self):
        ladder = self.place.json("ladder", *QUICK, "--stages", "fused-adamw", "--seeds", "5,7")
        self.assertEqual([len(rung["runs"]) for rung in ladder["rungs"]], [2, 2])
        seeds = [json.loads(row[0])["seed"] for row in self.rows("select recipe from runs order by rung, repeat")]
        self.assertEqual(seeds, [5, 7, 5, 7])

    def test_mistakes_are_named_and_nothing_is_trained(self):
        self.assertIn("--over: 'lr' has no values", self.refuse("sweep", *QUICK, "--over", "lr"))
        self.assertIn("--over: lr has an empty list", self.refuse("sweep", *QUICK, "--over", "lr= "))
        self.assertIn("did you mean batch?", self.refuse("sweep", *QUICK, "--over", "batsch=1,2"))
        self.assertIn("lr must be a number, not 'abc'", self.refuse("sweep", *QUICK, "--over", "lr=abc"))
        self.assertIn("--over", self.refuse("sweep", *QUICK))
        many = ",".join(map(str, range(1, 41)))
        self.assertIn("40 x 40 are too many: a sweep has at most 1,000 runs",
                      self.refuse("sweep", *QUICK, "--over", f"batch={many}", "--over", f"seed={many}"))
        error = self.refuse("sweep", *QUICK, "--over", "heads=2,3")
        self.assertIn("--over: heads=3: ", error)
        self.assertIn("3 heads do not divide a width of 32", error)

    def test_rungs_of_ones_own(self):
        ladder = self.place.json("ladder", *QUICK, "--stages",
                                 "flash-attention+fused-adamw:batch=8,mine:lr=3e-4:clip=1,seed=7,big:heads=3")
        self.assertEqual([(r["stage"], r["title"]) for r in ladder["rungs"]][2:], [("mine", "mine"), ("seed=7", "seed 7")])
        self.assertEqual(ladder["rungs"][1]["stage"], "flash-attention+fused-adamw")
        self.assertEqual(ladder["rungs"][2]["changed"], "lr 0.001 -> 3e-04, clip 0 -> 1")
        self.assertEqual([r["loss_against"] for r in ladder["rungs"]], [0, 0, 1, 2])
        self.assertEqual([(s["id"], "3 heads do not divide" in s["reason"]) for s in ladder["skipped"]], [("big", True)])
        self.assertIn("--stages: rung 2 'mine': lr must be a number, not 'abc'",
                      self.place.run("ladder", *QUICK, "--stages", "bf16,mine:lr=abc")[2])
        alone = self.place.json("ladder", *QUICK, "--only", "mine:lr=3e-4,clip=1")
        self.assertEqual([r["changed"] for r in alone["rungs"][1:]], ["lr 0.001 -> 3e-04", "clip 0 -> 1"])


    def test_a_saved_ladder_is_a_preset_by_name_and_by_file(self):
        folder = self.place.path / "config" / "stepladder" / "ladders"
        folder.mkdir(parents=True)
        recipe = {"layers": 1, "heads": 2, "d_model": 32, "batch": 4, "seq": 32, "steps": 9, "threads": 1}
        saved = {"stepladder": "ladder", "name": "kept", "repeats": 2, "recipe": recipe,
                 "rungs": ["baseline", "mine:lr=3e-4", {"rung": "flash-attention", "on": False}]}
        (folder / "my own.json").write_text(json.dumps(saved))
        ladder = self.place.json("ladder", "--plan", "my own", "--steps", 3)
        self.assertEqual(ladder["name"], "kept")
        self.assertEqual([(r["stage"], len(r["runs"])) for r in ladder["rungs"]], [("baseline", 2), ("mine", 2)])
        self.assertEqual({r["steps"] for r in ladder["runs"]}, {3})
        once = self.place.json("ladder", "--plan", folder / "my own.json", "--repeats", 1, "--steps", 2)
        self.assertEqual(len(once["runs"]), 2)

        saved["rungs"].append("yours:lr=abc")
        bad = self.place.path / "bad.json"
        bad.write_text(json.dumps(saved))
        status, _, error = self.place.run("ladder", "--plan", bad)
        self.assertEqual(status, 2)
        self.assertIn(f"{bad}: rung 4 'yours:lr=abc': lr must be a number, not 'abc'", error)
        status, _, error = self.place.run("ladder", "--plan", "my owm")
        self.assertEqual(status, 1)
        self.assertIn("--preset: \"my owm\" is unknown; did you mean my own?", error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
