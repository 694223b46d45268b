"""Traces that were once read wrongly (tests/data/traces): imported, exported and imported again; and real ones, where ../shared has them."""
import gzip
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

from program import BUILD, Workplace

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

    def doors(self, name, content):
        """The number of traces that each way in takes: the file, standard input, its folder, followed alone and in its folder."""
        counts = []
        for number, door in enumerate(("file", "pipe", "folder", "follow", "follow folder")):
            folder = self.place.path / f"{name} {number}"
            folder.mkdir()
            (folder / name).write_bytes(content)
            database = ("--db", folder / "runs.db")
            if door == "pipe":
                result = subprocess.run([BUILD / "stepladder", *map(str, database), "import", "-"], input=content, capture_output=True)
                code, err = result.returncode, result.stderr.decode()
            else:
                command = {"file": ("import", folder / name), "folder": ("import", folder), "follow": ("follow", "--once", folder / name),
                           "follow folder": ("follow", "--once", folder)}[door]
                code, _, err = self.place.run(*database, *command)
            self.assertEqual(code, 0, f"{door}: {err}")
            listed = json.loads(self.place.run(*database, "profile", "list", "--json")[1])
            runs = json.loads(self.place.run(*database, "runs", "--json")[1])
            self.assertEqual(runs, [], door)
            counts.append(len(listed))
        return counts

    def test_every_way_in_takes_a_trace_for_what_it_is(self):
        text = gzip.decompress((CASES / "lagging_stream.json.gz").read_bytes())
        self.assertEqual(self.doors("a.json", text), [1] * 5)
        self.assertEqual(self.doors("b.json.gz", gzip.compress(text)), [1] * 5)
        for path in [*sorted((SHARED / "traces").glob("*.gz")), *sorted((SHARED / "cases").glob("*trace*.json")),
                     *sorted((SHARED / "cases").glob("nsys*")), *sorted((SHARED / "cases").glob("*_cut.json"))]:
            with self.subTest(path.name):
                self.assertEqual(self.doors(path.name, path.read_bytes()), [1] * 5)

    def test_a_log_on_standard_input_is_still_a_log(self):
        log = "".join(f"iter {i}: loss {4 - 0.01 * i:.4f}, time 20.00ms\n" for i in range(30))
        result = subprocess.run([BUILD / "stepladder", "--db", str(self.place.path / "l.db"), "import", "-", "--json"], input=log.encode(),
                                capture_output=True)
        self.assertEqual(json.loads(result.stdout)["runs"][0]["steps"], 30, result.stderr)

    def test_a_trace_is_attached_to_its_run_only_when_that_is_certain(self):
        script = self.place.path / "work" / "train.py"
        script.parent.mkdir()
        script.write_text("import os, sys, time, json, socket\nsys.path.insert(0, sys.argv[1])\nimport stepladder\n"
                          "stepladder.init(project='p', dir='journals')\n"
                          "for i in range(3):\n    stepladder.log({'loss': 3.0 - i})\n    time.sleep(0.1)\n"
                          "now = time.time()\n"
                          "events = [{'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': os.getpid(), 'tid': 1, 'ts': 5.0, 'dur': 50.0}]\n"
                          "trace = {'baseTimeNanoseconds': int(now * 1e9), 'traceEvents': events}\n"
                          "for name in (f'{socket.gethostname()}_{os.getpid()}.123.pt.trace.json', 'trace.json'):\n"
                          "    open(name, 'w').write(json.dumps(trace))\n"
                          "stepladder.finish()\n")
        subprocess.run([sys.executable, script.name, str(pathlib.Path(__file__).resolve().parents[2] / "python")], cwd=script.parent, check=True)
        code, _, err = self.place.run("follow", "--once", script.parent / "journals")
        self.assertEqual(code, 0, err)
        named = next(script.parent.glob("*.pt.trace.json"))
        code, out, err = self.place.run("profile", "import", named, "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["run"], 1, err)
        self.assertIn("It belongs to run 1", err)
        code, _, err = self.place.run("profile", "import", named, "--json")
        self.assertEqual(len(json.loads(self.place.run("profile", "list", "--json")[1])), 1, "it is there already: " + err)
        # So is one of a program that was watched.
        watched = self.place.path / "watched"
        watched.mkdir()
        (watched / "train.py").write_text(
            "import os, time, json\nfor i in range(1, 6):\n    print(f'step {i} loss {4 - i / 10:.2f} dt 10.0ms', flush=True)\n    time.sleep(0.1)\n"
            "events = [{'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::gelu', 'pid': os.getpid(), 'tid': 1, 'ts': 5.0, 'dur': 50.0}]\n"
            "open('t.json', 'w').write(json.dumps({'baseTimeNanoseconds': int(time.time() * 1e9), 'traceEvents': events}))\n")
        database = self.place.path / "watched.db"
        subprocess.run([BUILD / "stepladder", "--db", database, "watch", "--", sys.executable, "train.py"], cwd=watched, check=True,
                       capture_output=True)
        code, out, err = self.place.run("--db", database, "profile", "import", watched / "t.json", "--json")
        self.assertEqual((code, json.loads(out)["run"]), (0, 1), err)
        # Another process wrote this one, as far as anybody can tell.
        other = script.parent / "other.json"
        other.write_text((script.parent / "trace.json").read_text().replace('"pid": ', '"pid": 9'))
        code, out, err = self.place.run("profile", "import", other, "--json")
        trace = json.loads(out)
        self.assertIsNone(trace["run"], err)
        self.assertIn("may belong to run 1", err)
        self.assertIn(f"profile attach {trace['id']} RUN", err)
        self.assertEqual(self.place.run("profile", "attach", trace["id"], 1)[0], 0)
        listed = json.loads(self.place.run("profile", "list", "--json")[1])
        self.assertEqual([each["run"] for each in listed], [1, 1])
        code, out, _ = self.place.run("profile", "attach", trace["id"], "none", "--json")
        self.assertEqual((code, json.loads(out)["run"]), (0, None))
        self.assertEqual(self.place.run("profile", "attach", trace["id"], 99)[0], 1)

    def test_noise_ranks_and_several_traces(self):
        def steps(name, times_us, rank=0):
            """A step of `mm` and `gelu` for each time of `mm`."""
            events, at = [], 0
            for number, us in enumerate(times_us):
                events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": at, "dur": us + 60})
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at, "dur": us})
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::gelu", "pid": 1, "tid": 1, "ts": at + us, "dur": 50})
                events.append({"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 1, "tid": 1, "ts": at + us + 50, "dur": 8})
                at += us + 60
            path = self.place.path / f"{name}.json"
            path.write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}))
            return path
        for name, times in (("slow", [1000, 1010, 990, 1005]), ("fast", [500, 505, 495, 502]), ("again", [1002, 1012, 992, 1001])):
            self.imported(steps(name, times))
        rows = {row["after"][0]: row for row in json.loads(self.place.run("profile", "diff", 1, 2, "--json")[1])["rows"]}
        self.assertTrue(rows["aten::mm"]["is_clear"])
        self.assertLess(rows["aten::mm"]["noise_ms"], 0.05)
        rows = {row["after"][0]: row for row in json.loads(self.place.run("profile", "diff", 1, 3, "--json")[1])["rows"]}
        self.assertFalse(rows["aten::mm"]["is_clear"])
        self.assertGreater(rows["aten::mm"]["noise_ms"], abs(rows["aten::mm"]["delta_ms"]))
        self.assertIn("beyond the noise", self.place.run("profile", "diff", 1, 2)[1])
        several = json.loads(self.place.run("profile", "diff", 1, 2, 3, "--json")[1])
        self.assertEqual(len(several["traces"]), 3)
        self.assertNotIn("lowest", self.place.run("profile", "diff", 1, 2, 3)[1], "the means of 1 and 3 differ by noise")
        ranks = [steps(f"rank{i}", [us + late for us in (1000, 1010, 990)], i) for i, late in enumerate((0, 200, 3))]
        code, out, err = self.place.run("profile", "import", *ranks, "--json")
        self.assertEqual(code, 0, err)
        report = json.loads(out)["ranks_report"]
        self.assertEqual(report["straggler"], 1)
        self.assertIn("wait for rank 1", self.place.run("profile", "show", json.loads(out)["id"])[1])

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
