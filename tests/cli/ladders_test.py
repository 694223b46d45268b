"""Ladders are things: listed, shown again, planned without training. A stop says what it leaves."""
import json
import time
import unittest

from program import PATIENCE_S, SMALLEST, Workplace


class Ladders(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def test_a_ladder_is_shown_as_it_was_printed_at_its_end(self):
        self.assertEqual(self.place.json("ladders"), [])
        words = ["ladder", *SMALLEST, "--steps", 20, "--device", "cpu", "--stages", "baseline,tf32,bf16", "--repeats", 2]
        status, out, err = self.place.run(*words, "--json")
        self.assertEqual(status, 0, err)
        ladder = json.loads(out)
        self.assertEqual(self.place.json("ladder", "show"), ladder)
        self.assertEqual(self.place.json("ladder", "show", ladder["ladder"]), ladder)
        self.assertEqual([rung["id"] for rung in ladder["skipped"]], ["tf32"])
        _, printed, _ = self.place.run(*words)
        self.assertEqual(self.place.run("ladder", "show")[1], printed)
        listed = self.place.json("ladders")
        self.assertEqual([(each["id"], each["stages"], each["runs"], each["finished"], each["over"]) for each in listed],
                         [(1, ["baseline", "bf16"], [1, 2, 3, 4], 4, []), (2, ["baseline", "bf16"], [5, 6, 7, 8], 4, [])])
        self.assertEqual(self.place.json("show", 3)["stages"], ["bf16"])
        self.assertEqual(self.place.json("show", 1)["stages"], [])
        status, _, err = self.place.run("ladder", "show", 9)
        self.assertEqual(status, 1)
        self.assertIn("`stepladder ladders` lists them", err)
        status, _, err = self.place.run("sweep", "show", 1)
        self.assertEqual(status, 2)
        self.assertIn("isn't a sweep; `stepladder ladder show 1`", err)

        sweep = self.place.json("sweep", *SMALLEST, "--steps", 12, "--over", "lr=1e-3,1e-4")
        self.place.json("ladder", *SMALLEST, "--steps", 12, "--stages", "baseline")
        again = self.place.json("sweep", "show")
        self.assertEqual((again["ladder"], again["rungs"]), (sweep["ladder"], sweep["rungs"]), "the latest that is one")
        self.assertEqual(self.place.json("ladders")[2]["over"], ["lr"])

    def test_a_run_of_several_stages_names_all(self):
        run = self.place.json("train", *SMALLEST, "--steps", 3, "--stage", "bf16,fused-adamw")
        self.assertEqual((run["stages"], run["stage"]), (["bf16", "fused-adamw"], "bf16+fused-adamw"))
        self.assertIn("bf16 autocast + Fused AdamW", run["name"])
        self.assertEqual(len(self.place.json("runs", "--filter", "stages=bf16")), 1)
        again = self.place.json("train", *SMALLEST, "--steps", 3, "--stage", "bf16,fused-adamw")
        self.assertEqual(again["name"], run["name"] + " (2)", "a name that nobody chose is one run's")
        self.assertEqual(self.place.json("show", again["name"])["id"], again["id"])

    def test_nothing_is_trained_by_a_dry_run(self):
        plan = self.place.json("ladder", *SMALLEST, "--device", "cpu", "--stages", "baseline,tf32,bf16:batch=2", "--repeats", 3, "--dry-run")
        self.assertEqual([(rung["stage"], rung["runs"]) for rung in plan["rungs"]], [("baseline", 3), ("bf16", 3)])
        self.assertEqual(([rung["id"] for rung in plan["skipped"]], plan["runs"], plan["dry_run"]), (["tf32"], 6, True))
        plan = self.place.json("sweep", *SMALLEST, "--over", "lr=1e-3,1e-4", "--over", "seed=1,2", "--dry-run")
        self.assertEqual((len(plan["rungs"]), plan["runs"]), (2, 4))
        self.assertEqual(self.place.json("ladder", "--plan", "rtx3080", "--steps", 5, "--dry-run")["dry_run"], True)
        self.assertIn("nothing was trained", self.place.run("ladder", *SMALLEST, "--stages", "bf16", "--dry-run")[2])
        self.assertEqual(self.place.run("ladder", "--stages", "bf61", "--dry-run")[0], 2)
        self.assertFalse(self.place.database.exists())

    def test_a_pause_and_a_stop_can_be_told(self):
        process = self.place.start("train", *SMALLEST, "--steps", 10000000)
        deadline = time.time() + PATIENCE_S
        def until(filter):
            while time.time() < deadline:
                if self.place.database.exists() and self.place.json("runs", "--filter", filter):
                    return
                time.sleep(0.1)
            self.fail(filter)
        until("steps>5")
        self.assertIs(self.place.json("show", "latest")["paused"], False)
        self.place.run("pause", "latest")
        until("paused=true status=running")
        self.assertIn("running, paused", self.place.run("runs")[1])
        self.assertIn("running, paused", self.place.run("show", "1")[1])
        status, _, err = self.place.run("stop", "status=running")
        self.assertEqual(status, 0)
        self.assertIn("saves no checkpoint at a stop, since --save-every is 0", err)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("saves no checkpoint at a stop", err)
        run = self.place.json("show", "latest")
        self.assertEqual((run["status"], run["paused"]), ("stopped", False))
        self.assertRegex(run["ended_at"], "^20..-")


if __name__ == "__main__":
    unittest.main(verbosity=2)
