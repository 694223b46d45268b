#!/usr/bin/env python3
"""What stepladder.py's calls write: steps, values, configuration, timed steps, and what isn't kept."""
import ast
import math
import sys
import unittest

from journal import MODULE, JournalTest, of_kind, read, values


class Calls(JournalTest):
    def test_python_3_8_can_parse_it_and_it_needs_the_standard_library_only(self):
        tree = ast.parse((MODULE / "stepladder.py").read_text(), feature_version=(3, 8))
        imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        self.assertEqual({name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names), set())

    def test_a_run(self):
        events = self.events("""
            import stepladder as wandb
            run = wandb.init(project="gpt2", name="first", config={"lr": 3e-4, "model": {"layers": 2}}, tags=["a"])
            for i in range(3):
                wandb.log({"loss": 2.0 / (i + 1), "val": {"acc": i, "top": {"five": True}}})
            wandb.summary["best"] = 0.5
            wandb.finish()
            """, "--data", "x.bin", "--api-key", "secret1", "--hub=hf_0123456789abcdef")
        start = events[0]
        self.assertEqual((start["e"], start["v"], start["name"], start["project"]), ("run", 1, "first", "gpt2"))
        self.assertEqual((start["rank"], start["world"], start["attempt"], start["tags"]), (0, 1, 1, ["a"]))
        self.assertRegex(start["uid"], "^[0-9a-f]{32}$")
        self.assertEqual(start["argv"][1:], ["--data", "x.bin", "--api-key", "***", "--hub=***"])
        self.assertEqual([e["v"] for e in of_kind(events, "config")], [{"lr": 3e-4}, {"model": {"layers": 2}}])
        self.assertEqual(values(events, "loss"), [(0, 2.0), (1, 1.0), (2, 2.0 / 3)])
        self.assertEqual(values(events, "val/acc"), [(0, 0), (1, 1), (2, 2)])
        self.assertEqual(values(events, "val/top/five"), [(0, 1), (1, 1), (2, 1)])
        self.assertEqual(of_kind(events, "summary")[0]["v"], {"best": 0.5})
        self.assertEqual((events[-1]["e"], events[-1]["status"], events[-1]["code"]), ("end", "finished", 0))

    def test_steps_count_as_in_wandb(self):
        out, _ = self.run_script("""
            import stepladder
            run = stepladder.init()
            stepladder.log({"a": 0}, commit=False)   # step 0, which stays open
            stepladder.log({"b": 0})                 # ends step 0
            stepladder.log({"a": 1})
            stepladder.log({"a": 10}, step=10)       # stays open
            stepladder.log({"b": 10})                # ends it
            stepladder.log({"a": 11})
            stepladder.log({"late": 5}, step=5)      # wandb drops it, this doesn't
            print(run.step, stepladder.run.step, run.summary["a"], run.summary.get("c", "none"))
            """)
        self.assertEqual(out, "12 12 11 none\n")
        events = self.only()
        self.assertEqual(values(events, "a"), [(0, 0), (1, 1), (10, 10), (11, 11)])
        self.assertEqual(values(events, "b"), [(0, 0), (10, 10)])
        self.assertEqual(values(events, "late"), [(5, 5)])

    def test_values_are_exact(self):
        events = self.events("""
            import stepladder, decimal
            stepladder.init()
            class Number(float): pass
            for value in (0.1 + 0.2, 1e-320, float("nan"), float("inf"), -float("inf"), -0.0, 2**53 + 1, 10**400,
                          Number(0.25), decimal.Decimal("0.5")):
                stepladder.log({"x": value})
            stepladder.log({"none": None, "text": "a\\tb\\n\\u00e9", "n\\u00e4me \\"q\\"": 1})
            """)
        got = [value for _, value in values(events, "x")]
        self.assertEqual(repr(got), repr([0.1 + 0.2, 1e-320, math.nan, math.inf, -math.inf, -0.0, 2**53 + 1, math.inf,
                                          0.25, 0.5]))
        self.assertEqual(of_kind(events, "text")[0]["text"], "a\tb\n\u00e9")
        self.assertEqual(values(events, 'n\u00e4me "q"'), [(10, 1)])

    def test_a_dict_may_be_changed_after_the_call(self):
        events = self.events("""
            import stepladder
            stepladder.init()
            row = {"x": 0, "deep": {"y": 0}}
            for i in range(1000):
                row["x"] = row["deep"]["y"] = i
                stepladder.log(row)
            row.clear()
            """)
        self.assertEqual(values(events, "x"), [(i, i) for i in range(1000)])
        self.assertEqual(values(events, "deep/y"), [(i, i) for i in range(1000)])

    def test_tensors(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch isn't installed")
        events = self.events("""
            import stepladder, torch
            stepladder.init()
            loss = torch.tensor(1.5, requires_grad=True)
            for i in range(3):
                stepladder.log({"loss": loss * 2, "same": loss, "half": torch.tensor([0.1], dtype=torch.bfloat16),
                                "int": torch.tensor(7), "bool": torch.tensor(True), "many": torch.zeros(3)})
                with torch.no_grad():
                    loss += 1
            """)
        self.assertEqual(values(events, "loss"), [(0, 3.0), (1, 5.0), (2, 7.0)])
        self.assertEqual(values(events, "same"), [(0, 1.5), (1, 2.5), (2, 3.5)])
        self.assertEqual(values(events, "half")[0], (0, 0.10009765625))
        self.assertEqual(values(events, "int")[0] + values(events, "bool")[0], (0, 7, 0, 1))
        self.assertEqual(of_kind(events, "skipped")[-1]["v"], {"tensor": {"many": 3}})

    def test_what_is_not_kept_is_counted_and_named(self):
        out, err = self.run_script("""
            import stepladder as wandb
            wandb.init()
            for i in range(3):
                wandb.log({"samples": wandb.Image(object(), caption="x"), "loss": 1.0})
            table = wandb.Table(columns=["a"])
            table.add_data(1)
            wandb.log({"table": table, "weights": [1, 2, 3]})
            wandb.run.log_artifact(wandb.Artifact("model", type="model"))
            wandb.finish()
            """)
        events = self.only()
        self.assertEqual(of_kind(events, "skipped")[-1]["v"],
                         {"Image": {"samples": 3}, "Table": {"table": 1}, "list": {"weights": 1},
                          "Artifact": {"artifact": 1}})
        self.assertEqual(len(values(events, "loss")), 3)
        self.assertIn("counted, but not kept: 1 Artifact (artifact); 3 Image (samples)", err)

    def test_metrics_are_defined(self):
        events = self.events("""
            import stepladder
            stepladder.init()
            stepladder.define_metric("val/*", step_metric="epoch", summary="max")
            stepladder.define_metric("val_bpb", unit="bits", goal="minimize", group="validation")
            stepladder.alert(title="High", text="loss 12", level=stepladder.AlertLevel.WARN)
            """)
        self.assertEqual([{k: v for k, v in e.items() if k != "e"} for e in of_kind(events, "metric")],
                         [{"name": "val/*", "better": "higher", "step": "epoch"},
                          {"name": "val_bpb", "unit": "bits", "better": "lower", "group": "validation"}])
        self.assertEqual(of_kind(events, "alert")[0]["title"], "High")

    def test_configuration(self):
        out, _ = self.run_script("""
            import argparse, stepladder
            run = stepladder.init(config=argparse.Namespace(lr=1e-3, path="s3://me:pw@host/x"))
            run.config.update({"batch": 8}, allow_val_change=True)
            stepladder.config.epochs = 3
            stepladder.config["inf"] = float("inf")
            stepladder.config["odd"] = object
            print(run.config.lr, run.config["batch"], stepladder.config.epochs, "none" in run.config)
            """)
        self.assertEqual(out, "0.001 8 3 False\n")
        merged = {}
        for event in of_kind(self.only(), "config"):
            merged.update(event["v"])
        self.assertEqual(merged, {"lr": 1e-3, "path": "s3://***@host/x", "batch": 8, "epochs": 3, "inf": "Infinity",
                                  "odd": "<class 'object'>"})

    def test_what_does_not_exist_does_nothing_and_is_said_once(self):
        out, err = self.run_script("""
            import stepladder as wandb
            run = wandb.init(settings=wandb.Settings(_disable_stats=True), magic=True)
            for i in range(3):
                api = wandb.Api()
                api.runs("x")[0].files
            wandb.watch(None); wandb.watch(None)
            run.use_artifact("x").download()
            with wandb.plot.line_series() as plot:
                pass
            wandb.log(5); wandb.log(None)
            wandb.log({"loss": 1.0})
            """)
        self.assertEqual(err.count("stepladder.Api isn't supported"), 1, err)
        self.assertEqual(err.count("watch: "), 1, err)
        self.assertEqual(err.count("log takes a dict"), 1, err)
        self.assertEqual(values(self.only(), "loss"), [(0, 1.0)])

    def test_disabled(self):
        script = """
            import stepladder, sys
            with stepladder.init(mode="disabled" if "now" in sys.argv else None, config={"a": 1}) as run:
                stepladder.log({"loss": 1.0})
                with stepladder.timed_step():
                    pass
                print(run.config.a, run.step, run.url)
            """
        self.assertEqual(self.run_script(script, "now"), ("1 0 None\n", ""))
        self.assertEqual(self.run_script(script, STEPLADDER_MODE="disabled"), ("1 0 None\n", ""))
        self.assertEqual(self.paths(), [])

    def test_a_second_init_in_a_script_is_the_same_run(self):
        out, _ = self.run_script("""
            import importlib, stepladder
            first = stepladder.init()
            print(stepladder.init(config={"a": 1}) is first)
            importlib.reload(stepladder)
            stepladder.log({"x": 1})
            second = stepladder.init(reinit=True)
            print(second is first)
            stepladder.log({"x": 2})
            """)
        self.assertEqual(out, "True\nFalse\n")
        found = sorted((values(events, "x"), events[-1]["status"]) for events in map(read, self.paths()))
        self.assertEqual(found, [([(0, 1)], "finished"), ([(0, 2)], "finished")])

    def test_how_it_ends(self):
        for body, status, expected in (
                ("raise ValueError('no data')", 1, {"status": "failed", "code": 1, "reason": "ValueError: no data"}),
                ("sys.exit(3)", 3, {"status": "failed", "code": 3, "reason": "exit code 3"}),
                ("sys.exit()", 0, {"status": "finished", "code": 0}),
                ("stepladder.finish(exit_code=2)", 0, {"status": "failed", "code": 2, "reason": "exit code 2"}),
                ("raise KeyboardInterrupt", -2, {"status": "stopped", "code": 130, "reason": "KeyboardInterrupt"})):
            with self.subTest(body):
                for path in self.paths():
                    path.unlink()
                end = self.events(f"import sys, stepladder\nstepladder.init()\n{body}\n", status=status)[-1]
                self.assertEqual({k: end[k] for k in end if k not in "et"}, expected)

    def test_the_summary_writer(self):
        events = self.events("""
            from stepladder import SummaryWriter
            with SummaryWriter("runs/exp1") as writer:
                for i in range(3):
                    writer.add_scalar("loss/train", 1.0 / (i + 1), i)
                    writer.add_scalars("losses", {"a": i, "b": -i}, i)
                writer.add_scalar("late", 5, walltime=100.25)
                writer.add_text("note", "hello", 2)
                writer.add_hparams({"lr": 0.1}, {"hparam/acc": 0.9})
                writer.add_histogram("weights", [1, 2], 0)
                writer.add_image("sample", None)
                writer.flush()
            """)
        self.assertEqual(events[0]["name"], "runs/exp1")
        self.assertEqual(values(events, "loss/train"), [(0, 1.0), (1, 0.5), (2, 1.0 / 3)])
        self.assertEqual(values(events, "losses/b"), [(0, 0), (1, -1), (2, -2)])
        self.assertEqual([e["t"] for e in of_kind(events, "log") if "late" in e["v"]], [100.25])
        self.assertEqual(values(events, "hparam/acc"), [(0, 0.9)])
        self.assertEqual(of_kind(events, "skipped")[-1]["v"], {"histogram": {"weights": 1}, "image": {"sample": 1}})
        self.assertEqual(events[-1]["status"], "finished")


class TimedSteps(JournalTest):
    def marks(self, body):
        events = self.events("import stepladder\nstepladder.init()\n" + body)
        return [(e["s"], e["y"]) for e in of_kind(events, "step")], events

    def test_a_block_has_the_step_of_the_log_call_after_it(self):
        found, events = self.marks("""
for i in range(5, 10):
    with stepladder.timed_step(tokens=64):
        pass
    stepladder.log({"loss": 1.0}, step=i)
""")
        self.assertEqual(found, [(i, "device") for i in range(5, 10)])
        self.assertEqual({e["n"] for e in of_kind(events, "step")}, {64})
        self.assertTrue(all(e["ms"] >= 0 for e in of_kind(events, "step")))

    def test_a_log_call_inside_the_block_is_the_same_step(self):
        self.assertEqual(self.marks("""
for i in range(4):
    with stepladder.timed_step():
        stepladder.log({"loss": 1.0})
""")[0], [(i, "device") for i in range(4)])

    def test_steps_between_two_log_calls_are_counted(self):
        self.assertEqual(self.marks("""
for i in range(21):
    with stepladder.timed_step(sync="none"):
        pass
    if i % 10 == 0:
        stepladder.log({"loss": 1.0}, step=i)
""")[0], [(i, "none") for i in range(21)])

    def test_no_log_call_at_all(self):
        self.assertEqual(self.marks("""
for i in range(3):
    with stepladder.timed_step():
        pass
""")[0], [(i, "device") for i in range(3)])

    def test_no_number_is_given_twice(self):
        found = [step for step, _ in self.marks("""
for i in range(30):
    with stepladder.timed_step():
        pass
    if i % 10 == 9:
        stepladder.log({"loss": 1.0})  # the script's steps are tens of these
""")[0]]
        self.assertEqual(found, list(range(30)))

    def test_a_block_that_raises_is_no_step(self):
        self.assertEqual(self.marks("""
for i in range(3):
    try:
        with stepladder.timed_step(step=i):
            if i == 1: raise ValueError
    except ValueError:
        pass
""")[0], [(0, "device"), (2, "device")])


class DeviceTensors(JournalTest):
    """A device that isn't there: torch is a stand-in whose tensors are ready when the test says so."""

    FAKE = """
import sys, types, threading
torch = types.ModuleType("torch")
torch.__version__ = "2.0"
class Device:
    type = "cuda"
class Event:
    ready = False
    def __init__(self, enable_timing=False): pass
    def record(self, stream=None): pass
    def query(self): return Event.ready
    def elapsed_time(self, other): return 12.5
class Tensor:
    device = Device()
    shape, dtype = (), None
    def __init__(self, value): self.number = value
    def numel(self): return 1
    def is_complex(self): return False
    def detach(self): return self
    def copy_(self, other, non_blocking): assert non_blocking; self.number = other.number
    def item(self):
        assert threading.current_thread() is not threading.main_thread(), "item() waits for the device"
        assert Event.ready
        return self.number
torch.Tensor = Tensor
torch.empty = lambda shape, dtype, pin_memory: Tensor(None) if pin_memory else 1 / 0
torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, Event=Event, current_stream=lambda device=None: None,
                                   is_current_stream_capturing=lambda: False, get_device_name=lambda: "GPU",
                                   device_count=lambda: 1, synchronize=lambda: 1 / 0)
torch.version = types.SimpleNamespace(cuda="13.0", hip=None)
sys.modules["torch"] = torch
import stepladder, time
run = stepladder.init()
"""

    def test_a_value_is_read_later_by_another_thread(self):
        events = self.events(self.FAKE + """
loss = Tensor(1.0)
for i in range(3):
    with stepladder.timed_step():
        pass
    stepladder.log({"loss": loss, "plain": i})
    loss.number += 1
time.sleep(0.5)
assert "loss" not in open(run.path).read()
Event.ready = True
""")
        self.assertEqual(values(events, "loss"), [(0, 1.0), (1, 2.0), (2, 3.0)])
        self.assertEqual(values(events, "plain"), [(0, 0), (1, 1), (2, 2)])
        self.assertEqual([(e["s"], e["ms"], e["y"]) for e in of_kind(events, "step")],
                         [(i, 12.5, "event") for i in range(3)])
        self.assertEqual(of_kind(events, "env")[0]["v"]["gpu"], "GPU")


if __name__ == "__main__":
    unittest.main()
