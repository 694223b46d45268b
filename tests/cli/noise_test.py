"""`stepladder doctor --noise`: equal runs in turns, and what verdicts learn from them."""
import unittest

from program import Workplace


class Noise(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def test_equal_runs_say_how_far_runs_lie_apart(self):
        noise = self.place.json("doctor", "--noise", 1)["noise"]
        runs = self.place.json("runs")
        self.assertGreaterEqual(noise["runs"], 6)  # three of each, however short the time
        self.assertEqual(len(runs), noise["runs"])
        self.assertEqual({run["ladder"] for run in runs}, {noise["ladder"]})
        self.assertGreater(noise["between"], 0)
        low, high = noise["between_ci95"]
        self.assertTrue(low < noise["between"] < high, noise)
        self.assertTrue(noise["drift_ci95"][0] < noise["drift"] < noise["drift_ci95"][1], noise)
        visible = noise["visible_gain"]
        self.assertGreater(visible["3"], visible["10"])
        self.assertGreaterEqual(visible["10"], 0.01)

        # Verdicts on single runs learn from the runs that others didn't disturb.
        if noise["disturbed"] == noise["runs"]:
            self.skipTest("other programs disturbed every run")
        self.place.json("ladder", "--steps", 20, "--stages", "baseline,fused-adamw")
        base, rung = self.place.json("runs")[-2:]
        compared = self.place.json("compare", base["id"], rung["id"])["runs"][0]
        if compared["ci95"]:
            self.assertIn(compared["spread_from"], ("project", "prior"))

    def test_bad_times_are_refused(self):
        for seconds in ("0", "-3", "soon"):
            status, out, err = self.place.run("doctor", f"--noise={seconds}")
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn("--noise", err)
        self.assertEqual(self.place.run("doctor", "--noise", 5, "--probe")[0], 2)


if __name__ == "__main__":
    unittest.main()
