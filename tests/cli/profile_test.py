"""Traces of PyTorch's profiler: imported, added up, attached to a run, subtracted. torch.profiler makes them here, and its own sums
(key_averages) are the expected ones. torch.compile's trace is made with ./test --long only, since compiling takes half a minute."""
import gzip
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import time
import unittest
import xml.etree.ElementTree

import gpu_trace
from program import TINY, Workplace

try:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
except ImportError:
    print("skipped: needs torch")
    sys.exit(77)

LONG = os.environ.get("STEPLADDER_LONG") == "1"
STEPS = 3


def make_trace(path, activation, compiled=False, memory=False):
    """A tiny training, traced; returns the profiler's own sums: name -> (calls, milliseconds, FLOPs or 0) of all steps."""
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
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=STEPS, repeat=1), record_shapes=True,
                 with_flops=True, profile_memory=memory) as profiler:
        for _ in range(2 + STEPS):
            step()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return {each.key: (each.count, each.self_cpu_time_total / 1000, each.flops) for each in profiler.key_averages()}


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


def make_gpt_trace(path):
    """Three blocks as nanoGPT writes them, two of its steps traced."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = (part.view(B, T, 4, C // 4).transpose(1, 2) for part in self.qkv(self.ln_1(x)).split(C, dim=2))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C))
            return x + self.down(F.gelu(self.up(self.ln_2(x))))

    class Gpt(nn.Module):
        def __init__(self, vocab=200, width=64, context=32):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
            self.blocks, self.ln_f, self.head = nn.ModuleList(Block(width) for _ in range(3)), nn.LayerNorm(width), nn.Linear(width, vocab)

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.head(self.ln_f(x)).flatten(0, 1), targets.flatten())

    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(200, (4, 32))
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as profiler:
        for _ in range(4):
            model(tokens, tokens).backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(str(path))


def fields_of(data):
    """Number and value of each field of a protocol buffer's message: a number, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2, key
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size


class Traces(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def check_sums(self, shown, sums):
        """Every row's time as the profiler adds it up, and all of them together as long as the steps; FLOPs of products too."""
        ours = {}
        for row in shown["operators"]:
            calls, ms, flops = ours.get(row["name"], (0, 0, 0))
            ours[row["name"]] = (calls + row["calls"] * STEPS, ms + row["busy_ms"] * STEPS, flops + (row["flops"] or 0) * STEPS)
        whole = sum(step["dt_ms"] for step in shown["data"])
        for name, (calls, ms, flops) in sums.items():
            if name not in ours:  # ranges without a namespace are time outside operators
                self.assertNotIn("::", name)
                continue
            self.assertAlmostEqual(ours[name][0], calls, msg=name)
            self.assertAlmostEqual(ours[name][1], ms, delta=max(0.01 * ms, 0.002), msg=name)
            if name in ("aten::mm", "aten::addmm"):
                self.assertGreater(flops, 0)
                self.assertAlmostEqual(ours[name][2], flops, msg=name)
        self.assertAlmostEqual(sum(ms for _, ms, _ in sums.values()), whole, delta=0.01 * whole)
        self.assertAlmostEqual(sum(row["self_ms"] for row in shown["operators"]) * STEPS, whole, delta=0.001 * whole)
        for step in shown["data"]:
            self.assertAlmostEqual(sum(kind["ms"] for kind in step["kinds"]), step["dt_ms"], delta=0.001 * step["dt_ms"])
        products = sum(ms for name, (_, ms, _) in sums.items() if name in ("aten::mm", "aten::addmm", "aten::linear"))
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

    def test_the_anatomy_of_a_gpt(self):
        """A small GPT in plain PyTorch, without a single range: the order of its operators tells its parts."""
        path = self.place.path / "gpt.json"
        make_gpt_trace(path)
        shown = self.place.json("profile", "import", path)
        parts = {}
        for row in shown["anatomy"]:
            parts[(row["phase"], row["part"], row["block"])] = parts.get((row["phase"], row["part"], row["block"]), 0) + row["ms"]
        for block in range(3):
            for phase in ("forward", "backward"):
                for part in ("attention", "MLP"):
                    self.assertGreater(parts.get((phase, part, block), 0), 0, (phase, part, block, parts))
        for part in ("embedding", "head", "loss"):
            self.assertGreater(parts.get(("forward", part, None), 0), 0, part)
        self.assertGreater(parts[("backward", "head", None)], 0)
        self.assertGreater(parts[("optimiser", "", None)], 0)
        self.assertAlmostEqual(sum(row["ms"] for row in shown["anatomy"]), shown["step_ms"], delta=0.001 * shown["step_ms"])
        model = sum(row["ms"] for row in shown["anatomy"] if row["phase"] in ("forward", "backward"))
        known = sum(row["ms"] for row in shown["anatomy"] if row["phase"] in ("forward", "backward") and row["known_by"] == "order")
        self.assertGreater(known, 0.8 * model)
        status, out, err = self.place.run("profile", "show", 1, "--anatomy")
        self.assertEqual(status, 0, err)
        self.assertIn("is guessed from the order of operators", out)
        self.assertIn("The model has 3 blocks", out)
        self.assertIn("block 2 attention, backward", self.place.run("profile", "show", 1, "--anatomy", "--all")[1])

    def test_kept_steps_are_exported_and_read_back(self):
        path = self.place.path / "eager.json"
        make_trace(path, torch.nn.GELU(), memory=True)
        self.place.json("profile", "import", path)
        chrome, perfetto = self.place.path / "out.json", self.place.path / "out.perfetto-trace"
        said = self.place.json("profile", "export", 1, "--out", chrome)
        events = json.loads(chrome.read_text())["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(slices), said["slices"])
        kept = {each["name"] for each in slices if each["name"].startswith("ProfilerStep#")}
        self.assertEqual(len(kept), said["steps"])
        self.assertGreaterEqual(len(kept), 2)  # the median may be the first or the last
        original = [event for event in json.loads(path.read_text())["traceEvents"]
                    if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation")]
        steps = [(event["ts"], event["ts"] + event["dur"]) for event in original if event["name"] in kept]
        self.assertEqual(sorted(each["name"] for each in slices),
                         sorted(each["name"] for each in original if any(start <= each["ts"] < end for start, end in steps)))
        # Our own import of it has the same rows.
        again = self.place.json("profile", "import", chrome)
        first = self.place.json("profile", "show", 1)
        self.assertEqual({row["name"] for row in again["operators"]}, {row["name"] for row in first["operators"]})
        lengths = {step["step"]: step["dt_ms"] for step in first["data"]}
        for step in again["data"]:
            self.assertAlmostEqual(step["dt_ms"], lengths[step["step"]], places=5)
        self.assertEqual(self.place.json("profile", "export", 1, "--out", perfetto, "--format", "perfetto")["slices"], said["slices"])
        self.check_perfetto(perfetto.read_bytes(), slices, [event for event in events if event["ph"] == "C"])
        self.assertEqual(self.place.run("profile", "export", 1, "--out", chrome, "--step", 999)[0], 2)

    def check_perfetto(self, data, slices, counters):
        """Every packet, field by field: slices nest on their track, and have the names and times of the JSON; so have the counters of memory."""
        names, tracks, open_, found, memory = {}, {}, {}, [], {}
        for field, packet in fields_of(data):
            self.assertEqual(field, 1)
            packet = dict(fields_of(packet))
            self.assertEqual(packet[10], 1)
            for field, entry in fields_of(packet.get(12, b"")):
                if field == 2:
                    entry = dict(fields_of(entry))
                    names[entry[1]] = entry[2].decode()
            if 60 in packet:
                track = dict(fields_of(packet[60]))
                tracks[track[1]] = track
            if 11 in packet:
                event = dict(fields_of(packet[11]))
                self.assertIn(event[11], tracks)
                if event[9] == 4:
                    memory[tracks[event[11]][2].decode().removeprefix("memory, "), packet[8]] = event[30]
                    continue
                stack = open_.setdefault(event[11], [])
                if event[9] == 1:
                    stack.append((names[event[10]], packet[8]))
                else:
                    name, start = stack.pop()
                    found.append((name, start, packet[8] - start))
        self.assertFalse(any(open_.values()))
        expected = sorted((each["name"], round(each["ts"] * 1000), round(each["dur"] * 1000)) for each in slices)
        self.assertEqual(sorted(found), expected)
        self.assertGreater(len(counters), 10)
        told = {(use, round(each["ts"] * 1000)): value for each in counters for use, value in each["args"].items()}
        for place, value in memory.items():  # only changes are written
            self.assertEqual(told[place], value, place)
        for use in ("activations", "gradients"):
            most = max(value for (name, _), value in told.items() if name == use)
            self.assertGreater(most, 0)
            self.assertEqual(max(value for (name, _), value in memory.items() if name == use), most)

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
        self.assertEqual((shown["device"], shown["calls"], shown["steps"]), ("cuda", 10000, 2))
        calls = sum(row["calls"] for row in shown["operators"] if row["name"])
        self.assertAlmostEqual(calls * shown["steps"], shown["calls"], msg="the operators' calls are the trace's")
        kinds = {each["kind"]: each for each in shown["kinds"]}
        self.assertAlmostEqual(kinds["matrix products"]["busy_ms"] * 2, busy["gemm"], delta=0.001 * busy["gemm"])
        self.assertAlmostEqual(kinds["copies and casts"]["busy_ms"] * 2, busy["Memcpy"], delta=0.001 * busy["Memcpy"])
        self.assertLess(kinds["copies and casts"]["ms"], kinds["copies and casts"]["busy_ms"])
        self.assertAlmostEqual(sum(each["ms"] for each in kinds.values()), shown["step_ms"], places=6)

    def test_known_sums_of_overlapping_kernels_and_of_a_known_change(self):
        """The large form is tests/bench/gpu_traces.py."""
        before, after = self.place.path / "before.json", self.place.path / "after.json"
        per_step = gpu_trace.write(before, 10_000, 4, shuffled=True)
        gpu_trace.write(after, 10_000, 4, cut=10, has_copies=False)
        gpu_trace.check_sums(self, self.place.json("profile", "import", before), per_step)
        self.check_chrome_of_a_gpu(per_step)
        self.place.json("profile", "import", after, "--name", "after")
        gpu_trace.check_difference(self, self.place.json("profile", "diff", "before", "after"), per_step, 10)

    def check_chrome_of_a_gpu(self, per_step):
        """As PyTorch's own traces, and as TensorBoard's profiler demands: a GPU's slices have its number as their process."""
        chrome = self.place.path / "gpu.json"
        steps = self.place.json("profile", "export", "before", "--out", chrome)["steps"]
        slices = [each for each in json.loads(chrome.read_text())["traceEvents"] if each["ph"] == "X"]
        counts = {}
        for each in slices:
            counts[each["cat"]] = counts.get(each["cat"], 0) + 1
            if "device" in each["args"]:
                self.assertEqual(each["pid"], each["args"]["device"])
            else:
                self.assertGreaterEqual(each["pid"], 1_000_000)
        self.assertEqual(counts["kernel"], 4 * per_step * steps)
        self.assertEqual(counts["gpu_memcpy"], per_step * steps)
        self.assertGreaterEqual(counts["cuda_runtime"], 5 * per_step * steps - 5)
        again = self.place.json("profile", "import", chrome, "--name", "exported")
        kinds = {each["kind"]: each["ms"] for each in again["kinds"]}
        for kind, share in gpu_trace.SHARES_US.items():
            self.assertAlmostEqual(kinds[kind], per_step * share / 1000, delta=0.01 * again["step_ms"], msg=kind)

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

    def test_the_report_shows_two_steps(self):
        """Where both runs have traces, the report draws them beside each other, with the numbers of `profile diff`."""
        for name, milliseconds in (("slow", 50.1), ("fast", 30.1)):
            log = self.place.path / f"{name}.log"
            log.write_text("".join(f"step {i} | loss {4 - i / 10} | dt {milliseconds}ms\n" for i in range(1, 9)))
            self.place.json("import", log)
        report = self.place.path / "report.html"

        def page():
            status, out, err = self.place.run("export", 1, 2, "--force", "--out", report)
            self.assertEqual(status, 0, err)
            return report.read_text()

        def trace_of(run, gelu_us):
            path = self.place.path / f"trace{run}.json"
            events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 20000 + gelu_us},
                      {"ph": "X", "cat": "cpu_op", "name": "aten::<mm>", "pid": 1, "tid": 1, "ts": 0, "dur": 20000},
                      {"ph": "X", "cat": "cpu_op", "name": "aten::gelu", "pid": 1, "tid": 1, "ts": 20000, "dur": gelu_us}]
            path.write_text(json.dumps({"traceEvents": events}))
            self.place.json("profile", "import", path, "--run", run)

        self.assertNotIn("slice by slice", page())
        trace_of(1, 30000)
        self.assertNotIn("slice by slice", page(), "one trace is nothing to compare")
        trace_of(2, 10000)
        text = page()
        self.assertIn("slice by slice", text)
        self.assertIn("Where does fast differ?", text)
        self.assertNotIn("explain the run", text)  # as long as the runs' steps
        self.assertIn("&lt;mm&gt;", text)
        drawn = next(svg for svg in re.findall(r"<svg .*?</svg>", text, re.S) if "slice by slice" in svg)
        root = xml.etree.ElementTree.fromstring(drawn)  # well-formed
        self.assertGreater(len(root.findall(".//{http://www.w3.org/2000/svg}path")), 2)
        # A trace whose steps take three times as long as those of its run explains nothing, and that is said everywhere.
        self.place.run("profile", "remove", 2)
        trace_of(2, 80000)
        said = "It doesn't explain the run's speed."
        self.assertIn(said, page().replace("&#39;", "'"))
        shown = self.place.json("profile", "list")[-1]["id"]
        for arguments in (("diff", 1, shown), ("show", shown)):
            status, out, err = self.place.run("profile", *arguments)
            self.assertEqual((status, said in err), (0, True), err)
        self.place.run("profile", "remove", shown)
        trace_of(2, 10000)
        text = page()
        self.assertNotIn("explain the run", text)
        printed = self.place.run("profile", "diff", 1, self.place.json("profile", "list")[-1]["id"])[1]
        row = next(line for line in printed.splitlines() if "gelu" in line)
        for cell in ("30.0 ms", "10.0 ms", "-20.0 ms"):
            self.assertIn(cell, row)
            self.assertIn(f">{cell.replace('-', chr(0x2212))}</td>", text)

    def test_our_own_steps_are_traced(self):
        """Each rung's steps in a training that records no run; its trace is attached to the rung's run."""
        self.assertEqual(self.place.run("ladder", *TINY, "--stages", "baseline,compile,compile-max", "--steps", 20, "--threads", 1)[0], 0)
        before = self.place.json("runs")
        for run, own in (1, "aten::native_layer_norm"), (2, "stepladder::add_norm"), (3, "plan::qkv"):
            made = self.place.json("profile", "run", run, "--traced", 3)
            self.assertEqual((made["run"], made["format"], made["source_path"], made["steps"]), (run, "stepladder", "", 3))
            self.assertEqual([step["step"] for step in made["data"]], [4, 5, 6])
            names = {row["name"]: row for row in made["operators"]}
            self.assertIn(own, names)
            self.assertAlmostEqual(sum(row["self_ms"] for row in made["operators"]), made["step_ms"], delta=0.001 * made["step_ms"])
            self.assertAlmostEqual(sum(row["ms"] for row in made["anatomy"]), made["step_ms"], delta=0.001 * made["step_ms"])
            self.assertTrue({"attention", "MLP"} <= {row["part"] for row in made["anatomy"] if row["known_by"] == "name"})
            # The run's own profile, which was timed after its last step, has the same calls.
            timed = {(row["part"], row["name"], row["shapes"]): row["calls"] for row in self.place.json("operators", run)[0]["operators"]}
            traced = {(row["part"], row["name"], row["shapes"]): row["calls"] for row in made["operators"]}
            for key in timed:
                if key[0] in ("forward", "backward") and "::" in key[1]:
                    self.assertAlmostEqual(traced.get(key, 0), timed[key], msg=key)
        self.assertEqual(self.place.json("runs"), before)  # nothing was recorded
        rows = self.place.json("profile", "diff", 1, 3)
        self.assertAlmostEqual(sum(row["delta_ms"] for row in rows["rows"]), rows["delta_ms"], places=6)
        # Each kind's work is in the trace; of this machine no peak is known, of a GPU that is named one is.
        for trace in 1, 2, 3:
            roofline = self.place.json("profile", "show", trace)["roofline"]
            kinds = {row["kind"]: row for row in roofline["kinds"]}
            self.assertGreater(kinds["matrix products"]["tflops"], 0)
            self.assertIsNone(kinds["layer norm"]["flops"])
            for kind in ("matrix products", "layer norm", "GELU", "optimiser"):
                self.assertGreater(kinds[kind]["bytes"], 0, (trace, kind))
                self.assertGreater(kinds[kind]["known_ms"], 0, (trace, kind))
        self.assertEqual(roofline["precision"], "fp32")
        self.assertNotEqual(roofline["hardware"], "")
        named = self.place.json("profile", "show", 1, "--hardware", "NVIDIA H100 SXM", "--precision", "bf16")["roofline"]
        kinds = {row["kind"]: row for row in named["kinds"]}
        self.assertEqual(named["precision"], "bf16")
        for kind, bound in ("matrix products", None), ("layer norm", "memory"):
            row = kinds[kind]
            self.assertTrue(0 < row["least_ms"] < row["known_ms"], row)
            if row["share"] is None:  # on a busy machine a tiny operator's callers may take most of the time
                self.assertLess(2 * row["known_ms"], row["ms"])
            else:
                self.assertAlmostEqual(row["share"], row["least_ms"] / row["known_ms"])
                self.assertIn(row["bound"], (bound or "memory", bound or "compute"))
        self.assertIn("aren't known", self.place.run("profile", "show", 1, "--roofline", "--hardware", "nothing")[1])
        self.assertEqual(self.place.run("profile", "show", 1, "--precision", "fp99")[0], 2)
        out = self.place.path / "own.json"
        self.assertGreater(self.place.json("profile", "export", 3, "--out", out)["slices"], 0)
        # Without a run: a recipe of options, whose trace stands alone.
        alone = self.place.json("profile", "run", *TINY, "--stage", "compile", "--traced", 1, "--name", "alone")
        self.assertEqual((alone["run"], alone["name"], alone["steps"]), (None, "alone", 1))
        self.assertEqual(self.place.run("profile", "run", 1, "--batch", 3)[0], 2)
        self.assertEqual(self.place.run("profile", "run", 99)[0], 1)
        status, out, err = self.place.run("profile", "run", *TINY, "--stage", "no-such-stage")
        self.assertEqual((status, err.count("\n")), (2, 1), err)
        self.assertEqual(len(self.place.json("profile", "list")), 4)

    def test_all_ranks_are_traced(self):
        """Each process of a run traces the same steps; what they exchange is communication."""
        made = self.place.json("profile", "run", *TINY, "--nproc", 2, "--traced", 2)
        self.assertEqual((made["ranks"], made["steps"]), (2, 4))
        self.assertEqual([(step["rank"], step["step"]) for step in made["data"]], [(0, 4), (0, 5), (1, 4), (1, 5)])
        for step in made["data"]:
            self.assertAlmostEqual(sum(kind["ms"] for kind in step["kinds"]), step["dt_ms"], delta=0.001 * step["dt_ms"])
        self.assertGreater(next(kind["ms"] for kind in made["kinds"] if kind["kind"] == "communication"), 0)
        with sqlite3.connect(self.place.database) as database:
            kept = database.execute("select rank, step from trace_slices order by rank, step").fetchall()
        self.assertEqual(kept, [(0, 4), (0, 5), (1, 4), (1, 5)])
        # A rank that fails is named, and nothing is kept.
        status, _, err = self.place.run("profile", "run", *TINY, "--nproc", 2, "--batch", 3)
        self.assertNotEqual(status, 0)
        self.assertEqual(len(self.place.json("profile", "list")), 1)

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
        # Ranks that don't go together are named.
        gpus = self.place.path / "gpus.json"
        gpus.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": device, "tid": 7, "ts": 0, "dur": 5, "args": {"device": device, "stream": 7}}
            for device in (0, 1)]}))
        for files, named, said in (((good, gpus), gpus, "is of a GPU"), ((gpus, good), good, "is of a CPU only"), ((gpus, gpus), gpus, "is of rank 0"),
                                   ((good, good), None, None)):
            status, out, err = self.place.run("profile", "import", *files)
            if named is None:  # numbered in their order
                self.assertEqual(status, 0, err)
                self.place.run("profile", "remove", 2)
                continue
            self.assertEqual((status, out, err.count("\n")), (1, "", 1), err)
            self.assertTrue(err.startswith(f"stepladder: {named} {said}"), err)
        pipe = self.place.path / "pipe"
        os.mkfifo(pipe)
        self.assertIn("is a pipe", self.place.run("profile", "import", pipe)[2])
        # An export never replaces a database.
        before = self.place.database.read_bytes()
        self.assertIn("is the database itself", self.place.run("profile", "export", 1, "--out", self.place.database)[2])
        self.assertEqual(self.place.database.read_bytes()[:4096], before[:4096])
        # Ctrl-C keeps nothing.
        large = self.place.path / "large.json"
        large.write_text('{"traceEvents": [' + ",\n".join(
            f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {i}, "dur": 1}}' for i in range(700_000)) + "]}")
        for delay in 0.3, 1, 3:  # on a busy machine the program needs longer until it listens
            process = self.place.start("profile", "import", large)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
            if process.returncode != -signal.SIGINT:
                break
        self.assertEqual((process.returncode, out), (130, ""), err)
        shutil.copy(good, bad)  # the same trace twice is no second rank
        self.assertEqual(self.place.run("profile", "import", good, "--run", "nobody")[0], 1)
        self.assertEqual(self.place.run("profile", "show", "nobody")[0], 1)
        self.assertEqual(self.place.run("profile", "diff", 1, "run:9")[0], 1)
        self.assertEqual(len(self.place.json("profile", "list")), 1)


if __name__ == "__main__":
    unittest.main()
