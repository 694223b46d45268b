"""One answer to one question: import, follow, runs, compare and the report agree on awkward data."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from program import Workplace

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"

def record_log(steps, ms, compile_ms):
    """A log as modded-nanogpt prints it: an evaluation at step 0, and a clock that begins again at step 11."""
    lines = [f"step:0/{steps} val_loss:10.9264 train_time:285ms step_avg:nanms"]
    clock = 285 + compile_ms
    for step in range(1, steps + 1):
        clock = (clock if step <= 10 else clock if step > 11 else 0) + ms
        mean = f"{clock / (step - 10):.2f}" if step > 12 else "nan"
        lines.append(f"step:{step}/{steps} train_loss:{10.9 - 8 * step / steps:.4f} train_time:{clock}ms "
                     f"step_avg:{mean}ms")
        if step % 50 == 0:
            lines.append(f"step:{step}/{steps} val_loss:{10.9 - 8 * step / steps:.4f} train_time:{clock}ms "
                         f"step_avg:{mean}ms")
    return "\n".join(lines) + "\n"


class OneTruth(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def journals(self, folder, settings):
        """Writes a journal for each (name, config)."""
        code = ("import sys, json, stepladder\n"
                "for name, config in json.loads(sys.argv[1]):\n"
                "    stepladder.init(project='p', name=name, config=config, tags=[config['optimizer'], 'night shift'])\n"
                "    for step in range(1, 30):\n"
                "        stepladder.log({'loss': 3 - step / 20, 'step_ms': 10.0, 'tokens_per_sec': 204800.0}, step=step)\n"
                "    stepladder.finish()\n")
        subprocess.run([sys.executable, "-c", code, json.dumps(settings)], check=True, stderr=subprocess.DEVNULL,
                       env={**os.environ, "STEPLADDER_DIR": str(folder),
                            "PYTHONPATH": str(PYTHON)})

    def test_a_verdict_over_the_baseline_does_not_depend_on_the_runs_beside_it(self):
        for i, ms in enumerate((100, 78, 78.1, 80)):
            (self.place.path / f"run{i}.log").write_text("".join(
                f"step {step} | loss {4 - 0.01 * step:.4f} | dt {ms + step * 7 % 5 / 10:.1f} ms | tok/s {8192e3 / ms:.0f}\n"
                for step in range(1, 61)))
            self.place.json("import", self.place.path / f"run{i}.log", "--tokens-per-step", "8192")
        verdicts = lambda *runs: {run["id"]: run["verdict"] for run in self.place.json("compare", *runs)["runs"]}
        self.assertEqual(verdicts("1", "2", "3", "4"), {2: "faster", 3: "faster", 4: "faster"})
        self.assertEqual(verdicts("1", "4", "2", "3"), {2: "faster", 3: "faster", 4: "faster"})
        self.assertEqual(verdicts("1-4"), verdicts("1", "2", "3", "4"))  # the first of them is the baseline
        self.assertEqual(self.place.run("compare", "2")[0], 2)

    def test_journals_are_repeats_by_their_configuration(self):
        folder = self.place.path / "night"
        self.journals(folder, [[f"{optimizer}-{lr}-{seed}", {"optimizer": optimizer, "lr": lr, "seed": seed}]
                               for optimizer in ("muon", "adamw") for lr in (1e-3, 3e-3) for seed in (1, 2, 3)])
        told = self.place.json("import", folder)
        places = sorted((run["rung"], run["repeat"]) for run in told["runs"])
        self.assertEqual(places, [(rung, repeat) for rung in range(4) for repeat in range(3)])
        self.assertIn("a sweep over lr, optimizer", told["groupings"][0]["reason"])
        by_rung = {}
        for run in told["runs"]:
            by_rung.setdefault(run["rung"], set()).add(run["name"].rsplit("-", 1)[0])
        self.assertTrue(all(len(names) == 1 for names in by_rung.values()), by_rung)
        other = Workplace()
        self.addCleanup(other.close)
        other.run("follow", "--once", folder)
        for name in ("name", "tokens_per_s", "dt_ms_median"):
            self.assertEqual(sorted(run[name] for run in told["runs"]), sorted(run[name] for run in other.json("runs")))
        for place in (self.place, other):
            self.assertEqual(len(place.json("runs", "--filter", "night-shift")), 12)

    def test_a_target_has_its_time_by_the_programs_own_clock(self):
        log = self.place.path / "muon.log"
        log.write_text(record_log(200, 100, 70_000))
        run, = self.place.json("import", log)["runs"]
        self.assertNotIn("missing-dt", run["flags"], "an evaluation before the first step is no step")
        (self.place.path / "slow.log").write_text(record_log(400, 150, 70_000))
        self.place.json("import", self.place.path / "slow.log")
        told = self.place.json("compare", "1", "2", "--target", "6.9")
        for each, seconds_a_step in zip(told["target"]["runs"], (0.1, 0.15)):
            reached = each["reached"]
            self.assertAlmostEqual(reached["seconds"], (reached["step"] - 10) * seconds_a_step, places=6)
        self.assertEqual(told["runs"][0]["verdict"], "cannot-tell", "of steps whose tokens are unknown")


if __name__ == "__main__":
    unittest.main()
