"""`stepladder try parts`: a made-up training with known effects of its hunks and options."""
import json
import pathlib
import unittest

from tried_checkout import TriedCheckout

# Five settings, far enough from each other to be hunks of their own. The first two act on each other.
GAP = "\n# -\n# -\n# -\n# -\n"
PARTS = "import os, pathlib, random, sys\n" + GAP.join(f"P{i} = 0" for i in range(1, 6)) + GAP + """
with pathlib.Path(os.environ["RUNS"]).open("a") as file:
    print(P1, P2, P3, P4, P5, *sys.argv[1:], file=file)
on = {word for word in sys.argv[1:]}
noise = random.Random(f"{os.environ['STEPLADDER_RUN']} 1")
gain = 0.020 * P1 + 0.010 * P2 + 0.012 * P1 * P2 + 0.005 * P3 - 0.004 * P5
gain += 0.03 * ("--fast" in on) + 0.01 * ("--more" in on)
print(f"val_bpb: {1 - gain + noise.gauss(0, 0.0004):.6f}")
"""


class Parts(TriedCheckout):
    def keep(self):
        self.begin("--metric", "val_bpb", text=PARTS)
        for i in range(1, 6):
            self.change(f"P{i} = 0", f"P{i} = 1")
        (self.repository / "notes.txt").write_text("one more part, of no effect\n")
        self.assertEqual(self.json("-m", "five at once")["verdict"], "kept")

    def test_hunks(self):
        self.keep()
        before = len(self.counted.read_text().splitlines())
        status = self.git("status", "--porcelain")
        answer = self.json("parts")
        self.assertEqual((answer["try"], answer["runs"], answer["failed_runs"]), (1, 12, 0))
        self.assertEqual(len(self.counted.read_text().splitlines()), before + 12)
        self.assertEqual(self.git("status", "--porcelain"), status)
        self.assertEqual(self.json("parts"), answer, "the runs that are there are used")
        self.assertEqual(len(self.counted.read_text().splitlines()), before + 12)
        parts = {part["what"].split(":")[0] + str(i): part for i, part in enumerate(answer["parts"])}
        self.assertEqual(len(parts), 6)
        effects = [part["difference"] for part in answer["parts"] if part["what"].startswith("train.py")]
        self.assertEqual(len(effects), 5, answer)
        for got, truth in zip(effects, (-0.026, -0.016, -0.005, 0, 0.004)):
            self.assertAlmostEqual(got, truth, delta=0.0015)
        self.assertEqual([pair["parts"] for pair in answer["pairs"]], [[2, 3]], "notes.txt is part 1")
        self.assertAlmostEqual(answer["pairs"][0]["difference"], -0.012, delta=0.003)
        verdicts = [part["verdict"] for part in answer["parts"]]
        self.assertEqual((verdicts[1], verdicts[2], verdicts[3], verdicts[5]), ("better", "better", "better", "worse"))
        self.assertLessEqual({1, 5, 6}, set(answer["droppable"]))
        text = self.run_here("parts")[1]
        self.assertIn("Parts 2 and 3 act on each other", text)
        self.assertEqual(self.json("show", "1")["parts"], answer)
        self.assertNotIn("parts", self.json("log")[0])
        runs = self.place.json("runs")
        self.assertEqual(len(runs), len(self.counted.read_text().splitlines()))
        self.change("P1 = 1", "P1 = 2")
        self.assertEqual(self.json("-m", "the series goes on")["verdict"], "kept")

    def test_flags(self):
        self.begin("--metric", "val_bpb", text=PARTS)
        self.change("P1 = 0", "P1 = 1")
        self.json("-m", "one")
        status, _, err = self.run_here("parts")
        self.assertEqual(status, 2)
        self.assertIn("1 part", err)
        answer = self.json("parts", "1", "--flag=--fast", "--flag=--more", "--flag=--of no-effect")
        self.assertEqual([part["what"] for part in answer["parts"]], ["--fast", "--more", "--of no-effect"])
        self.assertEqual(answer["runs"], 8)
        self.assertAlmostEqual(answer["parts"][0]["difference"], -0.03, delta=0.002)
        self.assertAlmostEqual(answer["parts"][1]["difference"], -0.01, delta=0.002)
        self.assertIn("1 0 0 0 0 --of no-effect", self.counted.read_text())
        self.assertEqual(answer["pairs"], [])

    def test_what_cannot_be_taken_apart(self):
        self.begin("--metric", "val_bpb", "--runs", "3", text=PARTS)
        self.assertEqual(self.run_here("parts")[0], 2)
        self.assertEqual(self.run_here("parts", "7")[0], 2)


if __name__ == "__main__":
    unittest.main()
