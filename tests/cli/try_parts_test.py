"""`stepladder try parts`: a made-up training with known effects of its hunks and options."""
import contextlib
import json
import sqlite3
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

# Prints its tokens if either setting says so; the change moves it from one to the other.
UNITS = "import os, random\n" + GAP.join(["FIRST = 1", "SECOND = 0", "MS = 100"]) + GAP + """
ms = MS + random.Random(os.environ["STEPLADDER_RUN"]).gauss(0, 0.2)
for i in range(1, 41):
    tokens = f" | tok/sec {4096e3 / (ms + i % 3 / 10):.2f}" if FIRST or SECOND else ""
    print(f"step {i} | loss {5 - i / 100:.3f} | dt {ms + i % 3 / 10:.2f}ms{tokens}")
"""

# One option is faster, the other only skips work.
TRADES = """import os, random, sys
MS = 100
ms = MS - 15 * ("--fuse" in sys.argv) - 15 * ("--skip" in sys.argv) + random.Random(os.environ["STEPLADDER_RUN"]).gauss(0, 0.2)
noise = random.Random(os.environ["STEPLADDER_SEED"])
for i in range(1, 41):
    loss = 5 - i / 100 + ("--skip" in sys.argv) + noise.gauss(0, 0.001)
    print(f"step {i} | loss {loss:.4f} | dt {ms + i % 3 / 10:.2f}ms")
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

    def test_each_run_is_of_its_own_state(self):
        self.keep()
        self.git("checkout", "-q", "--", "train.py")  # what try makes of it must not depend on the checkout
        self.json("parts")
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            rows = database.execute("SELECT name, title, environment, patch FROM runs LEFT JOIN patches ON run_id = id "
                                    "WHERE name LIKE '%try 1, %'").fetchall()
        self.assertEqual(len(rows), 12)
        for name, title, environment, patch in rows:
            chosen = [int(part) for part in name.rpartition("parts ")[2].split(",")] if "parts" in name else []
            self.assertEqual(json.loads(environment)["git"], {"commit": self.git("rev-parse", "HEAD"), "dirty": bool(chosen)})
            self.assertEqual([i for i in range(1, 6) if f"+P{i} = 1" in (patch or "")], [part - 1 for part in chosen if part > 1])
            self.assertEqual("notes.txt" in (patch or ""), 1 in chosen)

    def test_another_unit_is_no_value(self):
        self.begin("--runs", "4", text=UNITS)
        self.change("FIRST = 1", "FIRST = 0")
        self.change("SECOND = 0", "SECOND = 1")
        self.change("MS = 100", "MS = 80")
        self.assertEqual(self.json("-m", "moves the tokens")["verdict"], "kept")
        answer = self.json("parts")
        self.assertEqual((answer["runs"], answer["failed_runs"]), (8, 2))
        with contextlib.closing(sqlite3.connect(self.place.database)) as database:
            rows = database.execute("SELECT status, reason FROM runs WHERE name LIKE '%try 1, %'").fetchall()
        self.assertEqual({reason for status, reason in rows if status == "failed"},
                         {"the command gives s/step, and earlier runs gave s/token"})

    def test_four_parts(self):
        text = PARTS.replace("0.012 * P1 * P2", "0.012 * P3 * P4")
        self.begin("--metric", "val_bpb", text=text)
        for i in range(1, 5):
            self.change(f"P{i} = 0", f"P{i} = 1")
        self.assertEqual(self.json("-m", "four at once")["verdict"], "kept")
        answer = self.json("parts")
        self.assertEqual(answer["runs"], 16)
        self.assertEqual([(pair["parts"], pair["or"]) for pair in answer["pairs"]], [([3, 4], [])])
        self.assertEqual(answer["droppable"], [])

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

    def test_a_part_whose_loss_gives_way_is_no_gain(self):
        self.begin("--runs", "3", text=TRADES)
        self.change("MS = 100", "MS = 90")
        self.assertEqual(self.json("-m", "faster")["verdict"], "kept")
        honest, worse = self.json("parts", "1", "--flag=--fuse", "--flag=--skip")["parts"]
        self.assertEqual((honest["verdict"], honest["reason"]), ("better", None))
        self.assertEqual(worse["verdict"], "cannot-tell")
        self.assertIn("the loss is worse", worse["reason"])
        self.assertIn("Part 2 is no gain yet: the loss is worse", self.run_here("parts", "1", "--flag=--fuse", "--flag=--skip")[1])

    def test_a_series_that_has_ended(self):
        self.keep()
        self.json("end", "--runs", "2")
        answer = self.json("parts")
        self.assertEqual((answer["try"], answer["runs"], answer["failed_runs"]), (1, 12, 0))
        self.assertEqual(self.json("status")["state"], "ended")

    def test_what_cannot_be_taken_apart(self):
        self.begin("--metric", "val_bpb", "--runs", "3", text=PARTS)
        self.assertEqual(self.run_here("parts")[0], 2)
        self.assertEqual(self.run_here("parts", "7")[0], 2)


if __name__ == "__main__":
    unittest.main()
