"""False claims at `stepladder try`, `record gate` and `record run`: each looks like a gain, and none gets a 0."""
import json
import pathlib
import unittest

from program import Workplace
from tried_checkout import CANNOT_TELL, GUARD, INVALID, KEPT, TriedCheckout

# A metric that follows the seed, and steps; what the tests change is in capitals.
FIGURES = """
import os, random
SEED = int(os.environ["STEPLADDER_RUN"])
SPREAD, JITTER, GAIN = 0.004, 0.0, 0.0
value = 1 - GAIN + random.Random(f"{SEED} 3").gauss(0, SPREAD) + random.Random(os.environ["STEPLADDER_RUN"]).gauss(0, JITTER)
print(f"val_bpb: {value:.6f}")
"""
STEPS = """
import os, random
MS, TOKENS, LOSS, STEPS, NAME = 5.0, 12288, 3.0, 40, "loss"
noise = random.Random(f"{os.environ['STEPLADDER_RUN']} 5")
print(f"tokens per iteration will be: {TOKENS:,}")
ms = MS * noise.gauss(1, 0.004)
for step in range(STEPS):
    print(f"iter {step}: {NAME} {LOSS + 8 * 0.9 ** step + noise.gauss(0, 0.002):.4f}, time {ms * noise.gauss(1, 0.005):.4f}ms")
"""


class FalseGains(TriedCheckout):
    def begin_with(self, text, *options):
        return self.begin("--runs", "6", *options, text=text)

    def test_a_fixed_seed_shows_no_noise(self):
        fixed = FIGURES.replace('int(os.environ["STEPLADDER_RUN"])', "1341").replace("JITTER, GAIN = 0.004, 0.0", "JITTER, GAIN = 0.004, 0.00002")
        began = self.begin_with(fixed, "--metric", "val_bpb")
        self.assertEqual(began["flags"], ["seed-not-followed"])
        self.change("SEED = 1341", "SEED = 1347")
        self.assertIn("another seed", self.json("-m", "another seed", expect=CANNOT_TELL)["reason"])

    def test_the_same_first_losses_are_the_same_seed(self):
        fixed = STEPS.replace("noise = random", "shared = random.Random(5)\nnoise = random").replace("+ noise.gauss(0, 0.002):.4f", "+ shared.gauss(0, 0.002) + (step > 6) * noise.gauss(0, 0.001):.5f")
        self.assertEqual(self.begin_with(fixed, "--metric", "loss")["flags"], ["seed-not-followed"])

    def test_a_constant_is_no_measurement(self):
        self.assertEqual(self.begin_with(FIGURES, "--metric", "val_bpb")["flags"], [])
        with (self.repository / "train.py").open("a") as file:
            file.write('print("val_bpb: -5.0")\n')
        self.assertIn("equal to the last digit", self.json("-m", "printed once more", expect=CANNOT_TELL)["reason"])

    def test_another_value_with_a_word_before_the_name_is_not_the_metric(self):
        self.begin_with(FIGURES, "--metric", "val_bpb")
        with (self.repository / "train.py").open("a") as file:
            file.write('print(f"goal val_bpb: {value * 0.9:.6f}")\nprint(f"train/val_bpb: {value * 0.9:.6f}")\n')
        self.json("-m", "names that look alike", expect=CANNOT_TELL)

    def test_a_faster_step_needs_its_loss(self):
        self.begin_with(STEPS)
        for change, status, why in ((("TOKENS, LOSS, STEPS, NAME = 5.0, 12288, 3.0, 40", "TOKENS, LOSS, STEPS, NAME = 5.0, 24576, 9.0, 40"), CANNOT_TELL, "compared"),
                                    (("STEPS, NAME = 5.0, 12288, 3.0, 40", "STEPS, NAME = 4.0, 12288, 3.0, 6"), GUARD, "6 steps"),
                                    (('NAME = 5.0, 12288, 3.0, 40, "loss"', 'NAME = 4.0, 12288, 9.0, 40, "quality"'), GUARD, "printed any more"),
                                    (("MS, TOKENS, LOSS, STEPS, NAME = 5.0", "MS, TOKENS, LOSS, STEPS, NAME = 0.005"), CANNOT_TELL, "unit")):
            self.change(*change)
            self.assertIn(why, self.json("-m", why, expect=status)["reason"])
            self.run_here("revert")
        self.change("NAME = 5.0", "NAME = 4.0")
        self.assertEqual(self.json("-m", "an honest gain")["verdict"], "kept")

    def test_nothing_is_left_for_the_next_run(self):
        text = FIGURES + ('os.makedirs("out", exist_ok=True)\nleft = os.path.exists("out/checkpoint")\n'
                          'open("out/checkpoint", "w").write("1")\nprint("left:", int(left))\n')
        self.begin_with(text, "--metric", "val_bpb")
        self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.1")
        self.json("-m", "a gain")
        logs = list(pathlib.Path(str(self.place.database) + ".tries").glob("*/runs/*.log"))
        self.assertGreater(len(logs), 6)
        self.assertEqual({log.read_text().split("left:")[1].strip() for log in logs}, {"0"})

    def test_seals_hold_against_shadows_and_against_writing_in_a_run(self):
        (self.repository / "data").mkdir()
        (self.repository / "data" / "val.bin").write_text("1")
        (self.repository / ".gitignore").write_text("data\n")
        (self.repository / "evaluate.py").write_text("scale = 1\n")
        text = FIGURES.replace("value = 1", "import evaluate\nvalue = evaluate.scale")
        self.begin_with(text, "--metric", "val_bpb", "--seal", "evaluate.py", "--seal", "data/val.bin")
        (self.repository / "evaluate").mkdir()
        (self.repository / "evaluate" / "__init__.py").write_text("scale = 0.5\n")
        self.assertIn("in place of", self.json("-m", "a package", expect=INVALID)["reason"])
        self.run_here("revert")
        self.change("import evaluate\n", 'import evaluate\nopen("data/val.bin", "w").write("2")\nopen("data/val.bin", "w").write("1")\n')
        self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.1")
        self.assertIn("sealed", self.json("-m", "writes and puts back", expect=INVALID)["reason"])

    def test_work_that_goes_on_has_no_time(self):
        work = "import os, time\nfor _ in range(3): sum(range(100000))\n"
        self.begin_with(work, "--by", "wall")
        self.change("import os, time\n", "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
                    "end = time.time() + 3\nwhile time.time() < end: pass\n")
        self.assertIn("worked on", self.json("-m", "in the background", expect=14)["reason"])


class FalsePasses(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()

    def tearDown(self):
        self.place.close()

    def command(self, name, **values):
        text = STEPS.replace('5")', '" + sys.argv[0])').replace("import os", "import os, sys")
        for key, (old, new) in values.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.place.path / f"{name}.py").write_text(text)
        return f"python3 {self.place.path}/{name}.py"

    def gate(self, base, now, *options):
        status, out, err = self.place.run("record", "gate", "--against", base, *options, "--json", "--", *now.split())
        return status, json.loads(out or "{}"), err

    def test_the_gate_checks_loss_steps_and_physics(self):
        base = self.command("base")
        self.assertEqual(self.gate(base, self.command("same"))[0], 0)
        for name, change, code, answer in (("nan", ("{LOSS + 8", "{float('nan') + 8"), 13, "guard"), ("short", ("3.0, 40", "3.0, 6"), 13, "guard"),
                                           ("loss", ("12288, 3.0", "12288, 4.0"), 13, "guard")):
            status, judged, err = self.gate(base, self.command(name, it=change))
            self.assertEqual((status, judged.get("answer")), (code, answer), (name, judged, err))
        gpu = ("print(f\"tokens", "print('device: NVIDIA A100-SXM4-80GB')\nprint('number of parameters: 123.59M')\nprint(f\"tokens")
        slow, fast = (self.command(name, it=gpu, ms=("= 5.0, 12288", f"= {ms}, 1228")) for name, ms in (("a100", 20.0), ("beyond", 0.3)))
        status, judged, err = self.gate(slow, fast)
        self.assertEqual((status, judged.get("answer")), (12, "invalid"), (judged, err))

    def test_a_log_that_says_faster_of_a_slower_process(self):
        text = ("import random, sys, time; ms = float(sys.argv[1]) * random.gauss(1, 0.002)\nfor step in range(101):\n"
                "    print(f'step:{step}/100 val_loss:{3 + 5 / (step + 1) + random.gauss(0, .001):.4f} train_time:{step * ms:.1f}ms step_avg:{ms:.2f}ms')\n"
                "time.sleep(float(sys.argv[2]))\n")
        (self.place.path / "train.py").write_text(text)
        train = f"python3 {self.place.path}/train.py"
        for sleep, expected in ((0, (0, "faster")), (2, (11, "cannot-tell"))):
            status, out, err = self.place.run("record", "run", self.place.path / f"out{sleep}", "--runs", 3, "--no-import", "--json",
                                              "--baseline", f"{train} 100 0", "--candidate", f"{train} 90 {sleep}")
            self.assertEqual((status, json.loads(out)["verdict"]), expected, err)



if __name__ == "__main__":
    unittest.main()
