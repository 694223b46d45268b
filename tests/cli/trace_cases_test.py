"""Traces that were once read wrongly (tests/data/traces): imported, exported and imported again; and real ones, where ../shared has them."""
import gzip
import json
import pathlib
import shutil
import sqlite3
import unittest

from program import Workplace

CASES = pathlib.Path(__file__).resolve().parents[1] / "data" / "traces"
SHARED = pathlib.Path(__file__).resolve().parents[2] / ".." / "shared"
REAL = {"hta_sampled0": 2, "hta_sampled1": 2, "kineto_3": 6, "mnano_current": 4, "mnano_hook": 4, "tl_h100_Qwen_Qwen1.5-0.5B-Chat": 1,
        "tl_mi300_resnet_ckpt": 3}  # and their steps


def kinds_of(trace):
    return {each["kind"]: each["ms"] for each in trace["kinds"]}


def raw_busy(path):
    """Milliseconds of all kernels and copies that a step of the CPU launched, by name."""
    events = json.loads(gzip.decompress(path.read_bytes()))
    events = events["traceEvents"] if isinstance(events, dict) else events
    steps = [(e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and e.get("name", "").startswith("ProfilerStep#")
             and e.get("cat") != "gpu_user_annotation"]
    launches = {e["args"]["correlation"]: e["ts"] for e in events
                if e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime") and "correlation" in e.get("args", {})}
    busy = {}
    for event in events:
        if event.get("ph") == "X" and event.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"):
            at = launches.get(event["args"].get("correlation"))
            if at is not None and any(begin <= at < end for begin, end in steps):
                busy[event["name"]] = busy.get(event["name"], 0) + event["dur"] / 1000
    return busy


class TraceCases(unittest.TestCase):
    def setUp(self):
        self.place = Workplace()
        self.addCleanup(self.place.close)

    def imported(self, path):
        code, out, err = self.place.run("profile", "import", path, "--json")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def check_sums(self, trace):
        """Rows and kinds add up to the step."""
        self.assertAlmostEqual(sum(kinds_of(trace).values()), trace["step_ms"], delta=1e-6 * trace["step_ms"])
        self.assertAlmostEqual(sum(row["self_ms"] for row in trace["operators"]), trace["step_ms"], delta=1e-6 * trace["step_ms"])

    def check(self, trace, expected):
        self.check_sums(trace)
        steps = [each["dt_ms"] for each in trace["data"]]
        for ms, right in zip(steps, expected.get("steps", steps), strict=True):
            self.assertAlmostEqual(ms, right, delta=0.005 * right)
        if "mean" in expected:
            self.assertAlmostEqual(trace["step_ms"], expected["mean"], delta=0.002 * expected["mean"])
        for name, ms in expected.get("rows", {}).items():
            self.assertAlmostEqual(sum(row["self_ms"] for row in trace["operators"] if row["name"] == name), ms, places=6)
        for name, kind in expected.get("kind_of", {}).items():
            self.assertEqual({row["kind"] for row in trace["operators"] if row["name"].startswith(name)}, {kind}, name)
        for name, flops in expected.get("flops_of", {}).items():
            self.assertEqual([row["flops"] for row in trace["operators"] if row["name"].startswith(name)], [flops], name)
        self.assertEqual(trace["ranks"], expected.get("ranks", 1))
        self.assertTrue(any(expected.get("note", "") in note for note in trace["notes"] + [""]), trace["notes"])

    def test_each_case(self):
        for name, expected in json.loads((CASES / "expected.json").read_text()).items():
            with self.subTest(name):
                [path] = CASES.glob(name + ".*")
                self.check(self.imported(path), expected)

    def check_round_trip(self, trace):
        out = self.place.path / "again.json"
        code, _, err = self.place.run("profile", "export", trace["id"], "--force", "--out", out)
        self.assertEqual(code, 0, err)
        again = self.imported(out)
        whole = {(step["rank"], step["step"]): step for step in trace["data"]}
        for step in again["data"]:
            before = whole[step["rank"], step["step"]]
            self.assertAlmostEqual(step["dt_ms"], before["dt_ms"], places=4)
            kinds, kinds_before = kinds_of(step), kinds_of(before)
            self.assertEqual(set(kinds), set(kinds_before))
            for kind, ms in kinds.items():
                self.assertAlmostEqual(ms, kinds_before[kind], delta=0.001 * before["dt_ms"] + 0.002, msg=kind)

    def test_an_exported_trace_has_the_same_figures(self):
        for name in ("mnano_cut", "kineto8_cut", "lagging_stream", "j-trace-overlap"):
            with self.subTest(name):
                self.check_round_trip(self.imported(CASES / f"{name}.json.gz"))

    def test_import_takes_a_trace_as_a_trace(self):
        log = self.place.path / "run.log"
        log.write_text("".join(f"step {i} | loss {5 - i / 100:.2f} | dt 100.0ms\n" for i in range(1, 31)))
        told = self.place.json("import", CASES / "addmm_copy.json.gz", log)
        self.assertEqual([trace["name"] for trace in told["traces"]], ["addmm_copy"])
        self.assertEqual(len(told["runs"]), 1)
        code, out, err = self.place.run("import", CASES / "nsys_2proc.sqlite")
        self.assertEqual(code, 0, err)
        self.assertIn("2 ranks", out)

    def test_a_graph_that_was_traced_as_a_whole_is_work(self):
        export = self.place.path / "graph.sqlite"
        shutil.copy(CASES / "nsys_2proc.sqlite", export)
        database = sqlite3.connect(export)
        kernel = database.execute("SELECT min(start), deviceId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid <> ?", kernel[2:])
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
                         "correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, ?, 15, 9, ?, 1, 1)",
                         (kernel[0] + 10_000_000, kernel[0] + 276_000_000, *kernel[1:]))
        database.commit()
        database.close()
        trace = self.imported(export)
        self.check_sums(trace)
        self.assertAlmostEqual(kinds_of(trace)["CUDA graphs"], 266, places=3)
        self.assertTrue(any("traced as a whole" in note for note in trace["notes"]), trace["notes"])

    @unittest.skipUnless((SHARED / "traces").is_dir(), "skipped: needs ../shared/traces")
    def test_real_traces_add_up_kernel_by_kernel(self):
        for name, steps in REAL.items():
            with self.subTest(name):
                path = SHARED / "traces" / f"{name}.json.gz"
                trace = self.imported(path)
                self.assertEqual(trace["steps"], steps)
                self.check_sums(trace)
                busy = {}
                for row in trace["operators"]:
                    busy[row["name"]] = busy.get(row["name"], 0) + row["busy_ms"] * steps
                for kernel, ms in raw_busy(path).items():
                    self.assertAlmostEqual(busy.get(kernel, 0), ms, delta=max(0.02 * ms, 0.05), msg=kernel[:200])
        if (SHARED / "cases" / "nsys_graph.sqlite.gz").exists():
            export = self.place.path / "nsys_graph.sqlite"
            export.write_bytes(gzip.decompress((SHARED / "cases" / "nsys_graph.sqlite.gz").read_bytes()))
            trace = self.imported(export)
            self.assertGreater(kinds_of(trace)["CUDA graphs"], 200)
            self.assertLess(kinds_of(trace)["idle"], 60)


if __name__ == "__main__":
    unittest.main()
