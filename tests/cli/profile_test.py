"""Traces of PyTorch's profiler: imported, added up, attached to a run, subtracted. torch.profiler makes them here, and its own sums
(key_averages) are the expected ones. torch.compile's trace is made with ./test --long only, since compiling takes half a minute."""
import gzip
import json
import os
import random
import shutil
import sqlite3
import sys
import unittest

from program import Workplace

try:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
except ImportError:
    print("skipped: needs torch")
    sys.exit(77)

LONG = os.environ.get("STEPLADDER_LONG") == "1"
STEPS = 3


def make_trace(path, activation, compiled=False):
    """A tiny training, traced; returns the profiler's own sums: name -> (calls, milliseconds) of all steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), activation, torch.nn.LayerNorm(256), torch.nn.Linear(256, 64))
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters())
    inputs, targets = torch.randn(128, 64), torch.zeros(128, dtype=torch.long)

    def step():
        torch.nn.functional.cross_entropy(forward(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=STEPS, repeat=1), record_shapes=True) as profiler:
        for _ in range(2 + STEPS):
            step()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return {each.key: (each.count, each.self_cpu_time_total / 1000) for each in profiler.key_averages()}


def cuda_trace(kernels, streams, seed=1):
    """Kernels one after the other on each stream with gaps between them, and copies beside them; returns also the known sums."""
    chance = random.Random(seed)
    events, busy = [], {"gemm": 0, "Memcpy": 0}
    for step in range(2):
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
                       "ts": step * kernels * 10, "dur": kernels * 10})
    for stream in range(streams):
        at = 0
        for i in range(2 * kernels // streams):
            duration = chance.randint(1, 8 * streams)
            kind = "Memcpy" if stream == streams - 1 else "gemm"
            events.append({"ph": "X", "cat": "gpu_memcpy" if kind == "Memcpy" else "kernel", "name": f"{kind} HtoD" if kind == "Memcpy" else
                           f"sm80_xmma_gemm_{i % 50}", "pid": 0, "tid": stream, "ts": at, "dur": duration,
                           "args": {"device": 0, "stream": stream, "correlation": 0}})
            busy[kind] += duration / 1000
            at += 10 * streams
    chance.shuffle(events)
    return {"schemaVersion": 1, "traceEvents": events}, busy


class Traces(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def check_sums(self, shown, sums):
        """Every row's time as the profiler adds it up, and all of them together as long as the steps."""
        ours = {}
        for row in shown["operators"]:
            calls, ms = ours.get(row["name"], (0, 0))
            ours[row["name"]] = (calls + row["calls"] * STEPS, ms + row["busy_ms"] * STEPS)
        whole = sum(step["dt_ms"] for step in shown["data"])
        for name, (calls, ms) in sums.items():
            if name not in ours:  # ranges without a namespace are time outside operators
                self.assertNotIn("::", name)
                continue
            self.assertAlmostEqual(ours[name][0], calls, msg=name)
            self.assertAlmostEqual(ours[name][1], ms, delta=max(0.01 * ms, 0.002), msg=name)
        self.assertAlmostEqual(sum(ms for _, ms in sums.values()), whole, delta=0.01 * whole)
        self.assertAlmostEqual(sum(row["self_ms"] for row in shown["operators"]) * STEPS, whole, delta=0.001 * whole)
        for step in shown["data"]:
            self.assertAlmostEqual(sum(kind["ms"] for kind in step["kinds"]), step["dt_ms"], delta=0.001 * step["dt_ms"])
        products = sum(ms for name, (_, ms) in sums.items() if name in ("aten::mm", "aten::addmm", "aten::linear"))
        kind = next(each for each in shown["kinds"] if each["kind"] == "matrix products")
        self.assertAlmostEqual(kind["busy_ms"] * STEPS, products, delta=0.01 * products)

    def test_the_profilers_own_sums_and_the_difference_of_two(self):
        eager, relu = self.place.path / "eager.json", self.place.path / "relu.json.gz"
        sums = make_trace(eager, torch.nn.GELU())
        make_trace(relu, torch.nn.ReLU())
        shown = self.place.json("profile", "import", eager)
        self.assertEqual((shown["device"], shown["has_steps"], shown["steps"]), ("cpu", True, STEPS))
        self.check_sums(shown, sums)
        self.assertEqual(self.place.json("profile", "import", relu, "--name", "with relu")["id"], 2)
        self.assertEqual(self.place.json("profile", "show", "eager"), self.place.json("profile", "show", 1))
        self.assertEqual([each["name"] for each in self.place.json("profile", "list")], ["eager", "with relu"])

        made = self.place.json("profile", "diff", 1, "with relu")
        self.assertAlmostEqual(sum(row["delta_ms"] for row in made["rows"]), made["delta_ms"], places=6)
        self.assertAlmostEqual(made["delta_ms"], made["after_ms"] - made["before_ms"])
        changes = {(row["change"], name) for row in made["rows"] for name in row["before"] + row["after"]}
        self.assertIn(("vanished", "aten::gelu"), changes)
        self.assertIn(("vanished", "aten::gelu_backward"), changes)
        self.assertIn(("appeared", "aten::clamp_min"), changes)
        status, out, err = self.place.run("profile", "diff", 1, 2)
        self.assertIn("vanished", out, err)

    @unittest.skipUnless(LONG, "compiling takes long")
    def test_a_compiled_step(self):
        eager, compiled = self.place.path / "eager.json", self.place.path / "compiled.json"
        make_trace(eager, torch.nn.GELU())
        sums = make_trace(compiled, torch.nn.GELU(), compiled=True)
        self.place.json("profile", "import", eager)
        self.check_sums(self.place.json("profile", "import", compiled), sums)
        rows = self.place.json("profile", "diff", 1, 2)["rows"]
        fused = [row for row in rows if row["change"] == "fused"]
        self.assertTrue(any("aten::gelu" in row["before"] for row in fused), rows)

    def test_kernels_on_four_streams(self):
        made, busy = cuda_trace(5000, 4)
        path = self.place.path / "cuda.json.gz"
        with gzip.open(path, "wt") as out:
            json.dump(made, out)
        shown = self.place.json("profile", "import", path)
        self.assertEqual((shown["device"], shown["slices"], shown["steps"]), ("cuda", 10000, 2))
        kinds = {each["kind"]: each for each in shown["kinds"]}
        self.assertAlmostEqual(kinds["matrix products"]["busy_ms"] * 2, busy["gemm"], delta=0.001 * busy["gemm"])
        self.assertAlmostEqual(kinds["copies and casts"]["busy_ms"] * 2, busy["Memcpy"], delta=0.001 * busy["Memcpy"])
        self.assertLess(kinds["copies and casts"]["ms"], kinds["copies and casts"]["busy_ms"])
        self.assertAlmostEqual(sum(each["ms"] for each in kinds.values()), shown["step_ms"], places=6)

    def test_a_trace_of_a_run_is_its_profile(self):
        log = self.place.path / "a.log"
        log.write_text("".join(f"step {i} | loss {4 - i / 10} | dt 50.1ms\n" for i in range(1, 9)))
        self.place.json("import", log)
        trace = self.place.path / "t.json"
        trace.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 50000},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 40000}]}))
        self.assertEqual(self.place.json("profile", "import", trace, "--run", 1)["run"], 1)
        rows = self.place.json("operators", 1)[0]
        self.assertAlmostEqual(rows["profiled_ms"], 50)
        self.assertEqual(rows["kinds"][0]["kind"], "matrix products")
        self.place.json("profile", "diff", "run:1", 1)
        self.assertEqual(self.place.run("profile", "remove", 1)[0], 0)
        self.assertEqual(self.place.json("operators", 1)[0]["steps"], 0)

    def test_bad_input(self):
        good = self.place.path / "good.json"
        good.write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 4}]}')
        self.place.json("profile", "import", good)
        bad = self.place.path / "bad.json"
        for text in (good.read_text()[:60], "[" * 100_000, good.read_text().replace('"dur": 4', '"dur": -4'), "no trace"):
            bad.write_text(text)
            status, out, err = self.place.run("profile", "import", bad)
            self.assertEqual((status, out), (1, ""))
            self.assertTrue(err.startswith(f"stepladder: {bad} ") and err.count("\n") == 1, err)
        other = self.place.path / "other.sqlite"
        with sqlite3.connect(other) as database:
            database.execute("CREATE TABLE t (a)")
        self.assertEqual(self.place.run("profile", "import", other)[0], 1)
        self.assertEqual(self.place.run("profile", "import", self.place.path / "missing.json")[0], 1)
        shutil.copy(good, bad)  # the same trace twice is no second rank
        self.assertEqual(self.place.run("profile", "import", good, "--run", "nobody")[0], 2)
        self.assertEqual(self.place.run("profile", "show", "nobody")[0], 2)
        self.assertEqual(self.place.run("profile", "diff", 1, "run:9")[0], 2)
        self.assertEqual(len(self.place.json("profile", "list")), 1)


if __name__ == "__main__":
    unittest.main()
