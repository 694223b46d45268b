"""False claims at `stepladder try`, `record gate` and `record run`: each looks like a gain, and none gets a 0."""
import json
import pathlib
import random
import subprocess
import unittest

from program import Workplace
from tried_checkout import CANNOT_TELL, FAILED, GUARD, INVALID, KEPT, TriedCheckout

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

    def test_a_change_that_fixes_a_lucky_seed_shows_no_gain(self):
        self.assertEqual(self.begin_with(FIGURES, "--metric", "val_bpb")["flags"], [])
        lucky = min(range(300), key=lambda seed: random.Random(f"{seed} 3").gauss(0, 1))
        self.change('SEED = int(os.environ["STEPLADDER_RUN"])', f"SEED = {lucky}")
        self.change("JITTER, GAIN = 0.004, 0.0", "JITTER, GAIN = 0.004, 0.00002")
        self.assertIn("fixed a seed", self.json("-m", "a lucky seed", expect=CANNOT_TELL)["reason"])

    def test_a_guessed_direction_keeps_nothing(self):
        text = FIGURES.replace("val_bpb", "karma").replace("1 - GAIN", "1 + GAIN")
        self.begin_with(text, "--metric", "karma")
        self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.2")
        self.assertIn("whether a lower or higher karma is better", self.json("-m", "more", expect=CANNOT_TELL)["reason"])

    def test_bytecode_that_python_takes_unchecked_shadows_a_sealed_module(self):
        evaluate = FIGURES.replace("print(", "def score(): print(")
        (self.repository / "evaluate.py").write_text(evaluate)
        self.begin_with("import evaluate\nevaluate.score()\n", "--metric", "val_bpb", "--seal", "evaluate.py")
        better = self.place.path / "better.py"
        better.write_text(evaluate.replace("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.5"))
        for mode, code in (("UNCHECKED_HASH", INVALID), ("CHECKED_HASH", CANNOT_TELL)):
            script = (f"import importlib.util as i, os, py_compile as p; os.makedirs('__pycache__', exist_ok=True); p.compile({str(better)!r}, "
                      f"cfile=i.cache_from_source('evaluate.py'), invalidation_mode=p.PycInvalidationMode.{mode})")
            subprocess.run(["python3", "-c", script], cwd=self.repository, check=True)
            answer = self.json("-m", mode, expect=code)
            self.assertEqual("Python would import it in place of" in answer["reason"], code == INVALID, answer)

    def test_the_best_of_more_values_is_no_gain(self):
        text = ('import os, random\nCOUNT = 4\nnoise = random.Random(os.environ["STEPLADDER_RUN"] + "best")\n'
                'for step in range(COUNT):\n    print(f"step {step} score: {1 + step / 100 + noise.gauss(0, 0.001):.5f}")\n')
        self.begin_with(text, "--metric", "max(score)")
        self.change("COUNT = 4", "COUNT = 40")
        self.assertIn("better by luck", self.json("-m", "often", expect=CANNOT_TELL)["reason"])

    def test_a_tolerance_is_spent_once(self):
        self.begin_with(STEPS.replace("= 5.0, 12288", "= 9.0, 12288"))
        steps = ((9.0, 3.0), (8.0, 3.018), (7.2, 3.036), (6.5, 3.054), (5.8, 3.072))
        verdicts = []
        for (ms, loss), (faster, worse) in zip(steps, steps[1:]):
            self.change(f"NAME = {ms}, 12288, {loss},", f"NAME = {faster}, 12288, {worse},")
            status, out, err = self.run_here("-m", f"{worse}", "--json")
            verdicts.append(json.loads(out)["verdict"])
            if status == GUARD:
                self.assertIn("the series began with", json.loads(out)["reason"])
                break
        self.assertEqual((verdicts[0], verdicts[-1]), ("kept", "guard"))

    def test_a_tolerance_of_another_figure_is_spent_once(self):
        self.begin_with(FIGURES + 'MEMORY = 1000.0\nprint("memory_mb:", MEMORY)\n', "--metric", "val_bpb", "--also", "memory_mb=2%")
        self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.05")
        self.change("MEMORY = 1000.0", "MEMORY = 1015.0")
        self.assertEqual(self.json("-m", "a little memory")["verdict"], "kept")
        self.change("GAIN = 0.004, 0.0, 0.05", "GAIN = 0.004, 0.0, 0.1")
        self.change("MEMORY = 1015.0", "MEMORY = 1030.0")
        self.assertIn("since the series began", self.json("-m", "and a little more", expect=GUARD)["reason"])

    def test_another_unit_is_another_figure(self):
        self.begin_with(FIGURES + 'print("memory_mb: 1000.0")\n', "--metric", "val_bpb", "--also", "memory_mb=2%")
        self.change("{value:.6f}", "{value * 0.6931:.6f} nats")
        self.assertIn("nats", self.json("-m", "nats", expect=FAILED)["reason"])
        self.run_here("revert")
        self.change('print(f"val', 'print(f"val_bpb: {value:.6f}")\nvalue -= 0.1\nprint(f"val')
        self.change("{value:.6f}\")\nprint(\"mem", "{value:.6f} (best)\")\nprint(\"mem")
        self.assertIn("several values", self.json("-m", "the best", expect=FAILED)["reason"])
        self.run_here("revert")
        self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.1")
        self.change("memory_mb: 1000.0", "memory_mb: 1.465 GB")
        self.assertIn("memory_mb isn't printed", self.json("-m", "gigabytes", expect=GUARD)["reason"])

    def test_no_name_hides_a_checkpoint(self):
        text = FIGURES + ('os.makedirs("build", exist_ok=True)\nprint("object:", int(os.path.exists("build/object")))\n'
                          'open("build/object", "w").write("1")\n')
        self.begin_with(text, "--metric", "val_bpb")
        self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.1")
        self.change('os.makedirs("build"', 'os.makedirs("__pycache__", exist_ok=True)\nfor name in ("__pycache__/ckpt.pyc", "build/ckpt", ".pytest_cache"):\n'
                    '    os.makedirs("build", exist_ok=True)\n    print("left:", int(os.path.exists(name)))\n    open(name, "w").write("1")\nos.makedirs("build"')
        self.json("-m", "a gain")
        logs = [log.read_text() for log in sorted(pathlib.Path(str(self.place.database) + ".tries").glob("*/runs/*.log"))]
        changed = [log for log in logs if "left:" in log]
        self.assertGreater(len(changed), 1)
        self.assertNotIn("left: 1", "".join(changed))
        self.assertIn("object: 1", logs[5], "what the unchanged runs build stays")

    def test_the_held_out_command_is_no_part_of_a_change(self):
        (self.repository / "hold.py").write_text('print("val_bpb: 1.0")\n')
        self.begin_with(FIGURES, "--metric", "val_bpb", "--holdout", "python3 hold.py && python3 -m more")
        for name in ("hold.py", "more.py"):
            self.change("GAIN = 0.004, 0.0, 0.0", "GAIN = 0.004, 0.0, 0.1")
            (self.repository / name).write_text('print("val_bpb: 0.5")\n')
            self.assertIn(f"{name} is sealed", self.json("-m", name, expect=INVALID)["reason"])
            self.run_here("revert")

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

    def test_a_value_that_the_metric_cannot_have(self):
        self.begin_with(FIGURES, "--metric", "val_bpb")
        self.change("value = 1 - GAIN", "value = -0.5 - GAIN")
        self.assertIn("never negative", self.json("-m", "below zero", expect=INVALID)["reason"])
        self.change("value = -0.5 - GAIN", "value = 1 - GAIN")
        self.change("import os, random", "import os, random\nprint('val_bpb: 0.9')")
        self.change("value = 1 - GAIN", "value = 0.9 - GAIN")
        self.assertIn("prints 2 values", self.json("-m", "two of them", expect=CANNOT_TELL)["reason"])

    def test_work_that_goes_on_has_no_time(self):
        work = "import os, time\nfor _ in range(3): sum(range(100000))\n"
        self.begin_with(work, "--by", "wall")
        self.change("import os, time\n", "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
                    "end = time.time() + 3\nwhile time.time() < end: pass\n")
        self.assertIn("worked on", self.json("-m", "in the background", expect=14)["reason"])


class FalseRecords(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()

    def tearDown(self):
        self.place.close()

    def record_run(self, name, candidate, *options):
        text = ("import os, random, sys\nms, loss, steps = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])\n"
                "noise = random.Random(f\"{os.environ['STEPLADDER_SIDE']} {os.environ['STEPLADDER_RUN']}\")\nms *= noise.gauss(1, 0.002)\n"
                "for step in range(steps + 1):\n    print(f'step:{step}/{steps} val_loss:{loss + 5 / (step + 1) + noise.gauss(0, .001):.4f} '\n"
                "          f'train_time:{step * ms:.1f}ms step_avg:{ms:.2f}ms')\n"
                "if len(sys.argv) > 4 and not os.path.exists(sys.argv[4]):\n    open(sys.argv[4], 'w')\n    sys.exit('unlucky')\n")
        (self.place.path / "train.py").write_text(text)
        train = f"python3 {self.place.path}/train.py"
        arguments = ("record", "run", self.place.path / name, "--runs", 3, "--no-import", "--json", "--baseline", f"{train} 100 3.28 100",
                     "--candidate", f"{train} {candidate}", *options)
        status, out, err = self.place.run(*arguments)
        if status == 1:
            status, out, err = self.place.run(*arguments)
        return status, json.loads(out), err

    def test_faster_runs_of_another_loss_or_length(self):
        for name, candidate, expected, why in (("honest", "90 3.28 100", (0, "faster"), "faster"), ("worse", "90 5.0 100", (13, "misses"), "worse"),
                                               ("nan", "90 nan 100", (13, "misses"), "finite"), ("short", "90 3.28 40", (13, "misses"), "41 steps")):
            status, answer, err = self.record_run(name, candidate)
            self.assertEqual((status, answer["verdict"]), expected, (name, answer, err))
            self.assertIn(why, answer["reason"])

    def test_a_script_that_fails_when_unlucky(self):
        status, answer, err = self.record_run("unlucky", f"90 3.28 100 {self.place.path}/failed")
        self.assertEqual((status, answer["verdict"]), (12, "flagged"), err)
        self.assertEqual([flag["id"] for flag in answer["claim"]["flags"]], ["failed-runs"])
        self.assertEqual(answer["claim"]["n"], 3)

    def test_runs_that_the_project_calls_impossible(self):
        for run in range(6):
            ms = 200 if run < 3 else 2
            lines = ["using NVIDIA A100-SXM4-80GB", "number of parameters: 124.40M", "tokens per iteration will be: 12,288"]
            for step in range(61):
                if step % 30 == 0:
                    lines.append(f"step {step}: train loss {3.2 + 8 * 0.9 ** step:.4f}, val loss {3.2 + run / 1000 + 8 * 0.9 ** step:.4f}")
                lines.append(f"iter {step}: loss {3.2 + 8 * 0.9 ** step + run / 1000:.4f}, time {ms + (step * 7 + run) % 5 / 50:.2f}ms")
            (self.place.path / f"{run}.log").write_text("\n".join(lines) + "\n")
            self.place.json("import", self.place.path / f"{run}.log")
        status, out, err = self.place.run("record", "judge", "4-6", "--against", "1-3", "--rule", "modded-nanogpt-1", "--json")
        self.assertEqual(status, 12, out + err)
        self.assertIn("impossible-throughput", [flag["id"] for flag in json.loads(out)["flags"]])

    def test_a_folder_of_logs_is_asked_what_the_project_asks(self):
        def pool(name, ms, offset, stamp_ms=None):
            folder = self.place.path / name
            folder.mkdir()
            for run in range(4):
                step_ms = ms * (1 + 0.0005 * run)
                lines = ["number of parameters: 124,439,808", "tokens per step: 524288",
                         *(f"|   {gpu}  NVIDIA H100 80GB HBM3   On  |   00000000:19:0{gpu}.0 Off |      0 |" for gpu in range(8))]
                for step in range(201):
                    at = step * (stamp_ms or step_ms) / 1000
                    stamp = f"[2025-09-03 12:{int(at // 60):02d}:{at % 60:06.3f}] " if stamp_ms else ""
                    if step % 50 == 0:
                        loss = 3.2775 + 0.0006 * run if step == 200 else 10 - step / 50 + offset + run / 1000
                        lines.append(f"{stamp}step:{step}/200 val_loss:{loss:.4f} train_time:{step * step_ms:.0f}ms step_avg:{step_ms:.2f}ms")
                    lines.append(f"{stamp}step:{step}/200 train_time:{step * step_ms:.0f}ms step_avg:{step_ms:.2f}ms")
                (folder / f"{run}.txt").write_text("\n".join(lines) + "\n")
            return folder
        before = pool("before", 150, 0.5)
        for name, ms, stamp_ms, flags in (("honest", 145, None, []), ("beyond", 3, None, ["impossible-throughput"]),
                                          ("stamped", 145, 300, ["wall-clock-mismatch"])):
            _, out, err = self.place.run("record", "judge", pool(name, ms, 0, stamp_ms), "--against", before, "--rule", "modded-nanogpt-3", "--json")
            self.assertEqual([flag["id"] for flag in json.loads(out)["flags"] if flag["id"] != "no-script"], flags, (name, out, err))

    def test_runs_whose_clock_goes_back_are_no_gain(self):
        text = ("import random, sys\nback, ms = float(sys.argv[1]), 100 * random.gauss(1, 0.002)\nfor step in range(0, 301, 50):\n"
                "    now = step * ms - (back * ms if step == 300 else 0)\n"
                "    print(f'step:{step}/300 val_loss:{3.255 + 5 / (step + 1) + random.gauss(0, .001):.4f} train_time:{now:.0f}ms')\n")
        (self.place.path / "train.py").write_text(text)
        train = f"python3 {self.place.path}/train.py"
        for options in ((), ("--rule", "modded-nanogpt-1")):
            status, out, err = self.place.run("record", "run", self.place.path / f"back{len(options)}", "--runs", 3, "--no-import", "--json",
                                              "--baseline", f"{train} 0", "--candidate", f"{train} 160", *options)
            self.assertEqual((status, json.loads(out)["verdict"]), (12, "flagged"), out + err)

    def test_a_rule_of_ones_own_is_named(self):
        rules = pathlib.Path(self.place.environment["XDG_CONFIG_HOME"]) / "stepladder" / "rules"
        rules.mkdir(parents=True)
        shipped = next(pathlib.Path(__file__).parents[2].glob("assets/rules/modded-nanogpt-1.json"))
        rule = json.loads(shipped.read_text())
        rule["target"] = 9.0
        (rules / shipped.name).write_text(json.dumps(rule))
        for run in range(3):
            (self.place.path / f"{run}.log").write_text("".join(f"step:{s}/4 val_loss:{9 - s / 10 + run / 100} train_time:{s}s\n" for s in range(1, 5)))
        _, out, err = self.place.run("record", "judge", *(self.place.path / f"{run}.log" for run in range(3)), "--rule", "modded-nanogpt-1", "--json")
        self.assertIn("overrides the built-in one", json.loads(out)["reason"], err)


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

    def test_the_gate_asks_of_all_steps_and_of_the_model(self):
        base = self.command("base")
        for name, changes, why in (
                ("spikes", {"it": ("{ms * noise", "{(0.8 if step % 10 else 8) * ms * noise")}, "slower steps"),
                ("trained", {"it": ("0.9 ** step", "0.9 ** (step + 20)"), "ms": ("= 5.0, 12288", "= 4.0, 12288")}, "began with other weights")):
            status, judged, err = self.gate(base, self.command(name, **changes))
            self.assertEqual((status, judged.get("answer")), (11, "cannot-tell"), (name, judged, err))
            self.assertIn(why, judged["reason"])
        sized = lambda name, size, ms: self.command(name, it=("print(f\"tokens", f"print('number of parameters: {size}M')\nprint(f\"tokens"),
                                                    ms=("= 5.0, 12288", f"= {ms}, 12288"))
        status, judged, err = self.gate(sized("large", 123.59, 5.0), sized("small", 61.2, 2.5))
        self.assertEqual((status, judged.get("answer")), (11, "cannot-tell"), (judged, err))
        self.assertIn("models differ", judged["reason"])

    def test_the_gate_passes_no_gain_of_an_unknown_direction(self):
        prints = "import random, sys; print(f'regret: {float(sys.argv[1]) + random.gauss(0, 1e-4):.6f}')"
        (self.place.path / "print.py").write_text(prints)
        command = f"python3 {self.place.path}/print.py"
        for now, more, expected in ((1.2, (), (11, "cannot-tell")), (1.0, (), (0, "passes")), (1.2, ("--higher",), (0, "passes")),
                                    (0.8, ("--lower",), (0, "passes")), (0.8, (), (10, "worse"))):
            status, judged, err = self.gate(f"{command} 1.0", f"{command} {now}", "--metric", "regret", *more)
            self.assertEqual((status, judged.get("answer")), expected, (now, more, judged, err))
        status, _, err = self.place.run("record", "gate", "--out", self.place.path / "a.json", "--metric", "regret", "--command", f"{command} 1")
        self.assertEqual(status, 2, err)
        (self.place.path / "acc.py").write_text(prints.replace("regret", "val_acc"))
        command = f"python3 {self.place.path}/acc.py"
        for now in (1.7, 90):
            status, judged, err = self.gate(f"{command} 0.9", f"{command} {now}", "--metric", "val_acc")
            self.assertEqual((status, judged.get("answer")), (12, "invalid"), (judged, err))

    def test_a_log_that_says_faster_of_a_slower_process(self):
        text = ("import random, sys, time; ms = float(sys.argv[1]) * random.gauss(1, 0.002)\nfor step in range(101):\n"
                "    print(f'step:{step}/100 val_loss:{3 + 5 / (step + 1) + random.gauss(0, .001):.4f} train_time:{step * ms:.1f}ms step_avg:{ms:.2f}ms')\n"
                "time.sleep(float(sys.argv[2]))\n")
        (self.place.path / "train.py").write_text(text)
        train = f"python3 {self.place.path}/train.py"
        for sleep, expected in ((0, (0, "faster")), (6, (11, "cannot-tell"))):
            status, out, err = self.place.run("record", "run", self.place.path / f"out{sleep}", "--runs", 3, "--no-import", "--json",
                                              "--baseline", f"{train} 100 0", "--candidate", f"{train} 90 {sleep}")
            self.assertEqual((status, json.loads(out)["verdict"]), expected, err)



if __name__ == "__main__":
    unittest.main()
