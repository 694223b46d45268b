"""`stepladder predict`: a traced step with some of its work changed. The sums of the traces are known (gpu_trace.py), and those of a small
training here are compared with its own rungs."""
import json
import pathlib
import unittest

import gpu_trace
from program import TINY, Workplace

SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces"


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Workplace()
        trace = cls.place.path / "gpu.json"
        gpu_trace.write(trace, kernels=100, steps=2)
        cls.place.json("profile", "import", trace, "--name", "gpu")
        cls.traced = cls.place.json("profile", "run", *TINY, "--traced", 5)["id"]

    @classmethod
    def tearDownClass(cls):
        cls.place.close()

    def error(self, status, *arguments):
        code, out, err = self.place.run("predict", *arguments, "--json")
        self.assertEqual((code, out), (status, ""), err)
        error = json.loads(err)["error"]
        return {**error, "message": f"{error['message']}; {error['hint']}"}

    def test_nothing_changed_is_the_traced_step(self):
        for trace in ("gpu", f"profile:{self.traced}"):
            made = self.place.json("predict", trace, "--scale", "gelu=1")
            self.assertAlmostEqual(made["predicted_ms"] / made["step_ms"], 1, places=6)
            self.assertAlmostEqual(made["factor"], 1, places=6)
            self.assertEqual((made["bound"], made["step_from"], made["of"]["run"]), ("estimate", "trace", None))

    def test_more_of_a_kind_is_slower_and_less_is_faster(self):
        trace = f"profile:{self.traced}"
        steps = [self.place.json("predict", trace, "--scale", f"products={factor}")["predicted_ms"] for factor in (0, 0.5, 1, 2, 100)]
        self.assertEqual(steps, sorted(steps))
        self.assertLess(steps[0], steps[2])
        both = [self.place.json("predict", trace, "--scale", text)["predicted_ms"] for text in ("optimizer=0", "optimiser=0")]
        self.assertEqual(*both)
        rows = self.place.json("predict", trace, "--scale", "optimizer=0.5,GELU=0.25")["rows"]
        self.assertEqual([row["kind"] for row in rows], ["optimiser", "GELU"])
        self.assertAlmostEqual(rows[0]["after_ms"], rows[0]["before_ms"] / 2)

    def test_parts_of_the_model(self):
        trace = f"profile:{self.traced}"
        made = self.place.json("predict", trace, "--part", "mlp/gelu=fused")
        self.assertEqual((made["bound"], made["rows"][0]["after_ms"]), ("at most", 0))
        self.assertGreater(made["factor"], 1)
        whole = self.place.json("predict", trace, "--part", "mlp=0", "--part", "attention=0", "--scale", "optimizer=0")
        self.assertLess(whole["predicted_ms"], made["predicted_ms"])

    def test_stages_by_their_laws(self):
        made = self.place.json("predict", f"profile:{self.traced}", "--stage", "fused-adamw")
        self.assertEqual((made["stages"], made["bound"]), (["fused-adamw"], "estimate"))
        self.assertGreater(made["factor"], 1)
        self.assertLess(made["factor_ci95"][0], made["factor_ci95"][1])
        neutral = self.place.json("predict", f"profile:{self.traced}", "--stage", "cosine-lr")
        self.assertAlmostEqual(neutral["factor"], 1, places=6)
        silent = self.place.json("predict", f"profile:{self.traced}", "--stage", "ddp")
        self.assertEqual((silent["bound"], silent["predicted_ms"], silent["ci95"]), ("unknown", None, None))
        self.assertTrue(silent["why_unknown"])

    def test_what_is_left(self):
        made = self.place.json("predict", f"profile:{self.traced}")
        self.assertEqual({"floor", "stages", "order", "sentence", "notes"} - set(made), set())
        self.assertNotIn("baseline", [stage["stage"] for stage in made["stages"]])
        factors = [stage["factor"] for stage in made["stages"] if stage["factor"] is not None]
        self.assertEqual(factors, sorted(factors, reverse=True))
        status, out, err = self.place.run("predict", f"profile:{self.traced}")
        self.assertEqual(status, 0, err)
        self.assertIn("matrix products", out)
        self.assertIn(made["largest"].split(":")[0], " ".join(out.split()))

    def test_a_run_is_measured_and_its_trace_gives_the_factor(self):
        run = self.place.json("train", *TINY, "--steps", 12)["id"]
        error = self.error(1, run, "--stage", "bf16")
        self.assertEqual(error["code"], "no-trace")
        self.assertIn(f"profile run {run}", error["message"])
        # A trace that others on this machine made several times as slow as the run says nothing of it, and says so.
        for _ in range(10):
            self.place.json("profile", "run", run)
            made = self.place.json("predict", run, "--stage", "fused-adamw")
            if made["predicted_ms"] is not None:
                break
            self.assertRegex(made["why_unknown"], "^a traced step takes .+ trace it again while nothing else runs$")
        else:
            self.skipTest("this machine is too busy to trace a step as long as the run's")
        self.assertEqual((made["step_from"], made["of"]["run"]), ("run", run))
        self.assertEqual(made["step_ms"], self.place.json("show", run)["dt_ms_median"])
        self.assertAlmostEqual(made["step_ms"] / made["predicted_ms"], made["factor"])
        before = self.place.json("predict", run, "--stage", "fused-adamw")["calibration"]["here"]
        self.place.json("train", *TINY, "--steps", 12, "--stage", "fused-adamw")
        self.assertEqual(self.place.json("predict", run, "--stage", "fused-adamw")["calibration"]["here"], before + 1)

    def test_bad_input(self):
        trace = f"profile:{self.traced}"
        for arguments, words in (
                (["--scale", "warp=2"], "attention"), (["--scale", "gelu=-1"], "0 to 100"), (["--scale", "gelu=101"], "0 to 100"),
                (["--scale", "gelu=nan"], "0 to 100"), (["--scale", "gelu=fast"], "0 to 100"), (["--scale", "gelu"], "attention=0.4"),
                (["--scale", "gelu=1,gelu=2"], "twice"), (["--scale", "gelu=1", "--scale", "GELU=2"], "twice"), (["--scale", ""], ""),
                (["--part", "wheel=1"], "mlp"), (["--part", "mlp/warp=1"], "kinds"), (["--part", "mlp/gelu=1,mlp/gelu=2"], "twice"),
                (["--stage", "warp"], "stage"), (["--stage", "bf16", "--stage", "bf16"], "twice"), (["--stage", "tf32"], "NVIDIA"),
                (["--stage", "compile,compile-max"], "exclude each other"),
        ):
            self.assertIn(words, self.error(2, trace, *arguments)["message"], arguments)
        self.assertEqual(self.error(1, "profile:99")["code"], "no-such-trace")
        self.assertEqual(self.error(1, "99")["code"], "no-such-run")
        self.assertEqual(self.error(2)["code"], "missing-argument")
        with_bf16 = self.place.json("profile", "run", *TINY, "--stage", "fused-adamw", "--traced", 2, "--after", 0)["id"]
        self.assertIn("already", self.error(2, f"profile:{with_bf16}", "--stage", "fused-adamw")["message"])

    def test_traces_of_others(self):
        if not SHARED.exists():
            self.skipTest("skipped: needs ../shared/traces")
        for path in sorted(SHARED.glob("*.json.gz")):
            trace = self.place.json("profile", "import", path)["id"]
            made = self.place.json("predict", f"profile:{trace}", "--scale", "optimizer=0,data=1")
            self.assertLessEqual(made["predicted_ms"], made["step_ms"] * (1 + 1e-6), path)
            self.place.json("predict", f"profile:{trace}")
            self.place.json("predict", f"profile:{trace}", "--stage", "padded-vocab")


if __name__ == "__main__":
    unittest.main()
