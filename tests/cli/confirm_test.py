"""`stepladder confirm`: a small ladder, and the repeats until the verdict on a speed-up is clear."""
import json
import re
import signal
import time
import unittest

from program import PATIENCE_S, TINY, Workplace

FIELDS = {"run", "base", "speedup", "ci95", "verdict", "trust", "repeats", "needed_runs", "reason"}


class Confirm(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def ladder(self, *arguments):
        """Two rungs."""
        steps = () if "--steps" in arguments else ("--steps", 40)
        self.place.json("ladder", *TINY, *steps, "--stages", "baseline,fused-adamw", *arguments)
        return self.place.json("runs")

    def confirm(self, *arguments):
        # The machine of a test is seldom quiet.
        status, out, err = self.place.run("confirm", *arguments, "--patience", 0, "--json")
        return status, json.loads(out) if out else None, err

    def test_two_rungs_are_repeated_until_the_verdict_is_clear(self):
        base, rung = self.ladder()
        status, answer, err = self.confirm(rung["id"], "--max-repeats", 4)
        self.assertEqual(set(answer), FIELDS)
        self.assertEqual((answer["run"], answer["base"]), (rung["id"], base["id"]))
        # Other programs may disturb some runs of a test, which are then left out, or all of a side.
        left_out = int((re.findall(r"Left out: (\d+)", answer["reason"]) or [0])[0])
        if answer["trust"] == "trusted":
            self.assertIn(answer["repeats"], (1, 2, 3, 4) if left_out else (2, 3, 4))
        else:
            self.assertEqual(answer["trust"], "doubtful")
            self.assertIn("Others used", answer["reason"])
        if answer["verdict"] != "cannot-tell":
            self.assertLess(answer["ci95"][0], answer["ci95"][1])
        expected = {"faster": 0, "same": 0, "slower": 10, "cannot-tell": 11}
        self.assertEqual(status, expected[answer["verdict"]], err)
        self.assertRegex(answer["reason"], "clear after|inconclusive after|Others used")
        self.assertIn("repeat 2 of at most 4", err)
        runs = self.place.json("runs")
        for side in (base, rung):
            repeats = [r for r in runs if r["ladder"] == side["ladder"] and r["stage"] == side["stage"]]
            self.assertGreaterEqual(len(repeats), answer["repeats"])
            self.assertLessEqual(len(repeats), answer["repeats"] + left_out if answer["trust"] == "trusted" else 4)
            self.assertEqual(sorted(r["repeat"] for r in repeats), list(range(len(repeats))))

        # A metric is judged by one value for each seed: those runs are copies, so others with new seeds are trained.
        before = len(self.place.json("runs"))
        status, out, err = self.place.run("confirm", rung["id"], "--metric", "loss", "--until", "20%", "--max-repeats", 5,
                                          "--patience", 0, "--json")
        judged = json.loads(out)
        self.assertEqual((status, judged["metric"], judged["verdict"], judged["repeats"]), (0, "loss", "same", 2), (out, err))
        self.assertAlmostEqual(judged["difference"], judged["value"] - judged["base_value"])
        self.assertEqual(len(self.place.json("runs")), before + 2)
        status, _, err = self.place.run("confirm", rung["id"], "--metric", "nothing", "--patience", 0)
        self.assertEqual(status, 1)
        self.assertIn("has no nothing", err + _)
        self.assertEqual(self.place.run("confirm", rung["id"], "--lower")[0], 2)
        status, _, err = self.place.run("confirm", rung["id"], "--metric", "lr", "--patience", 0)
        self.assertEqual(status, 2)
        self.assertIn("nobody says whether a lower or higher lr is better", err)
        runs = self.place.json("runs")

        # The runs exist, so the same question is answered without further ones, and any repeat may be named.
        # The runs with new seeds have a speed too, so they may make a verdict clear that was not.
        named = runs[-1]["id"] if runs[-1]["stage"] == rung["stage"] else rung["id"]
        again = ("--against", base["id"], "--max-repeats", max(2, answer["repeats"]))
        status, later, err = self.confirm(named, *again)
        self.assertEqual(status, expected[later["verdict"]], err)
        self.assertEqual((later["base"], later["speedup"] > 0), (base["id"], True))
        text_status, out, err = self.place.run("confirm", named, *again)
        self.assertEqual(text_status, status, err)
        self.assertIn("95 % interval", out)
        self.assertEqual(len(self.place.json("runs")), len(runs))

        # A difference of 50 % can be told from these runs alone, whatever the machine does.
        status, out, err = self.place.run("confirm", rung["id"], "--until", "50%", "--patience", 0)
        self.assertIn(status, (0, 10, 11), err)
        self.assertNotIn("would tell 1", out)
        for difference in ("0", "0%", "-1%", "much", "70%"):
            status, out, err = self.place.run("confirm", rung["id"], f"--until={difference}")
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn("--until", err)

    def test_an_impossible_rung_is_not_confirmed(self):
        base, rung = self.ladder()
        table = self.place.path / "config" / "stepladder" / "hardware.csv"
        table.parent.mkdir(parents=True)
        columns = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source"
        table.write_text(f"{columns}\n{rung['hardware']},,1e-6,1e-6,1e-6,1e-6,,10,16,a test\n")
        status, answer, err = self.confirm(rung["id"])
        self.assertEqual((status, answer["trust"], answer["verdict"]), (12, "impossible", "cannot-tell"), err)
        self.assertIn("is impossible", answer["reason"])
        self.assertEqual(len(self.place.json("runs")), 2, "no repeat can make it possible")

    def test_two_runs_outside_a_ladder(self):
        run = self.place.json("train", *TINY, "--steps", 20)
        bigger = self.place.json("train", *TINY, "--steps", 20, "--batch", 32)
        status, answer, err = self.confirm(bigger["id"], "--against", run["id"], "--max-repeats", 2)
        self.assertEqual(set(answer), FIELDS, err)
        self.assertEqual(answer["base"], run["id"])
        self.assertEqual(len(self.place.json("runs")), 4)
        status, answer, err = self.confirm(bigger["id"])
        self.assertEqual(status, 2)
        self.assertIn("--against", err)

    def test_what_cannot_be_confirmed(self):
        base, rung = self.ladder()
        log = self.place.path / "log.txt"
        log.write_text("".join(f"step {i} loss 4.0 dt 10ms tok/sec 1000\n" for i in range(1, 30)))
        self.place.json("import", log)
        imported = next(run["id"] for run in self.place.json("runs") if run["source"] == "import")
        for arguments, words in [((base["id"],), "baseline"), ((99,), "no run 99"), ((rung["id"], "--against", 99), "99"),
                                 ((rung["id"], "--against", rung["id"]), "compared with itself"),
                                 ((imported, "--against", base["id"]), "not launched here"),
                                 ((rung["id"], "--max-repeats", 1), "--max-repeats")]:
            status, out, err = self.place.run("confirm", *arguments)
            self.assertEqual((status, out), (1 if 99 in arguments else 2, ""), err)  # 1: it isn't there
            self.assertIn(words, err)

    def test_ctrl_c_ends_it_with_an_answer(self):
        base, rung = self.ladder("--steps", 1000)
        process = self.place.start("confirm", rung["id"], "--patience", 0, "--json")
        deadline = time.time() + PATIENCE_S
        while len(self.place.json("runs")) < 4 and time.time() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        answer = json.loads(out)
        self.assertEqual((answer["verdict"], answer["repeats"], set(answer)), ("cannot-tell", 1, FIELDS))


if __name__ == "__main__":
    unittest.main()
