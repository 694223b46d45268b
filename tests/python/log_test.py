#!/usr/bin/env python3
"""What stepladder.py's calls write: steps, values, configuration, timed steps, and what isn't kept."""
import ast
import json
import math
import sys
import textwrap
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

    def test_log_is_a_method_that_can_be_replaced(self):
        out, _ = self.run_script("""
            import unittest.mock, stepladder
            class Louder(stepladder.Run):
                def log(self, data, *rest):
                    print("louder", data)
                    super().log(data, *rest)
            louder = Louder("", "a", "a", "", {}, True)
            louder.log({"x": 1})
            print(stepladder.Run.log.__doc__.split(".")[0])
            run = stepladder.init()
            with unittest.mock.patch.object(stepladder.Run, "log") as log:
                run.log({"x": 2})
                log.assert_called_once_with({"x": 2})
                stepladder.init(reinit=True)
                stepladder.log({"x": 3})
                log.assert_called_with({"x": 3})
            """)
        self.assertEqual(out, "louder {'x': 1}\nKeeps the numbers of a dict\n")

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

    def test_a_device_that_fails_loses_its_value_only(self):
        events = self.events(self.FAKE + """
class Lost(Tensor):
    def detach(self): return Lost(self.number)
    def item(self): raise KeyboardInterrupt if self.number else RuntimeError("device-side assert triggered")
torch.empty = lambda shape, dtype, pin_memory: Lost(None)
Event.ready = True
for i in range(3):
    stepladder.log({"loss": Lost(i), "plain": i})
Event.query = lambda self: 1 / 0
stepladder.log({"loss": Lost(3), "plain": 3})
""")
        self.assertEqual(values(events, "plain"), [(i, i) for i in range(4)])
        self.assertEqual(of_kind(events, "skipped")[-1]["v"], {"Lost": {"loss": 4}})


class Secrets(JournalTest):
    # The same cases as tests/app/text/secrets_test.cpp's.
    HIDDEN = [
        (["--api-key=abc"], ["--api-key=***"]),
        (["--token", "abc", "--steps", "5"], ["--token", "***", "--steps", "5"]),
        (["WANDB_API_KEY=abc", "python"], ["WANDB_API_KEY=***", "python"]),
        (["KEY=a b c"], ["KEY=***"]),
        (["PGPASSWORD=abc", "HFTOKEN=abc", "API_KEY_PROD=abc"], ["PGPASSWORD=***", "HFTOKEN=***", "API_KEY_PROD=***"]),
        (["cd x && HF_TOKEN=abc python t.py --password xyz --steps 5"],
         ["cd x && HF_TOKEN=*** python t.py --password *** --steps 5"]),
        (["run --password 'x y' --steps 5"], ["run --password *** --steps 5"]),
        (["export KEY='a b' && run"], ["export KEY=*** && run"]),
        (["Authorization: Bearer abc"], ["Authorization: ***"]),
        (["authorization:Bearer abc"], ["authorization:***"]),
        (["Authorization:", "Bearer", "abc", "x"], ["Authorization:", "***", "***", "x"]),
        (["--header=Authorization: Basic abc"], ["--header=Authorization: ***"]),
        (["curl -H Bearer abc host"], ["curl -H Bearer *** host"]),
        (["curl -H 'Authorization: Basic abc' host"], ["curl -H 'Authorization: ***' host"]),
        (["curl -H 'Cookie: a=b; c=d' host"], ["curl -H 'Cookie: ***' host"]),
        (["curl -H X-Api-Key:abc host"], ["curl -H X-Api-Key:*** host"]),
        (['{"api_key": "a b", "steps": 5}'], ['{"api_key": ***, "steps": 5}']),
        (["{'wandb': {'token':'abc'}}"], ["{'wandb': {'token':***}}"]),
        (["password = abc, steps = 5"], ["password = ***, steps = 5"]),
        (["+wandb.api_key=abc"], ["+wandb.api_key=***"]),
        (["https://me:pass@host/a.git"], ["https://***@host/a.git"]),
        (["--url=https://abc@host"], ["--url=https://***@host"]),
        (["https://host/?a=1&api_key=abc&b=2"], ["https://host/?a=1&api_key=***&b=2"]),
        (["https://host/x?X-Amz-Credential=abc&X-Amz-Signature=abc"],
         ["https://host/x?X-Amz-Credential=***&X-Amz-Signature=***"]),
        (["sk-0123456789abcdef"], ["***"]),
        (["--login", "hf_0123456789abcdef"], ["--login", "***"]),
        (["--login=ghp_0123456789abcdef"], ["--login=***"]),
    ]
    LEFT = ["--tokens-per-step 524288 --steps 5", "--tokenizer=gpt2 --max-tokens=5", "--keys 3 --author me",
            "--sort-by=loss --monkey=1", "import - --gpu a100", "git clone https://host/a@b", "x --token --steps 5",
            "sk-learn", "http://localhost:8080/x", "C:\\data\\x.bin", "lr: 0.1, steps: 5", "a::b", "KEY="]

    def test_arguments(self):
        out, _ = self.run_script("""
            import json, sys, stepladder
            print(json.dumps([stepladder._without_secrets(words) for words in json.loads(sys.argv[1])]))
            """, json.dumps([words for words, _ in self.HIDDEN] + [[line] for line in self.LEFT]))
        for (words, expected), found in zip(self.HIDDEN + [([line], [line]) for line in self.LEFT], json.loads(out)):
            self.assertEqual(found, expected)

    def test_a_configuration_and_a_reason(self):
        self.run_script("""
            import argparse, stepladder
            run = stepladder.init(config=argparse.Namespace(api_key="abc", lr=0.1, hub={"token": ["abc"], "name": "x"}))
            run.config.db_password, run.config.tokens, run.config.key = b"abc", 5, 7
            run.config.url = "https://me:abc@host"
            run.summary["access_token"] = "abc"
            raise ValueError("401 for https://me:abc@host/?api_key=abc")
            """, status=1)
        self.assertNotIn(b"abc", self.paths()[0].read_bytes().replace(str(self.folder).encode(), b""))
        config = {name: value for event in of_kind(self.only(), "config") for name, value in event["v"].items()}
        self.assertEqual(config, {"api_key": "***", "lr": 0.1, "hub": {"token": ["***"], "name": "x"}, "key": 7,
                                  "db_password": "***", "tokens": 5, "url": "https://***@host"})
        self.assertEqual(self.only()[-1]["reason"], "ValueError: 401 for https://***@host/?api_key=***")

    def test_a_long_argument_takes_no_time(self):
        self.run_script("import stepladder\nstepladder.init()\n", "a" * 100000, "a=" * 50000, "://" * 40000,
                        " " * 100000, "'" * 100000, "key: '" * 20000, "a " * 50000)


class Hostile(JournalTest):
    """Values whose classes raise wherever they are asked something."""

    VALUES = textwrap.dedent("""
        import collections.abc, json, sys, threading, stepladder

        class Broken(Exception):
            def __str__(self): raise self
            __repr__ = __str__

        def raises(*_, **__): raise Broken()
        HOOKS = ("str repr float int index format len iter next hash eq ne bool getitem contains call add radd pos lt "
                 "getattribute getattr array fspath enter reversed abs round complex bytes").split()
        HOOKS = ["__%s__" % name for name in HOOKS]
        FIELDS = "keys items values get item size shape to_dict _fields __dataclass_fields__ __class__ __dict__".split()

        def value_of(base, hooks=(), fields=()):
            body = {name: raises for name in hooks}
            body.update({name: property(raises) for name in fields})
            if base is collections.abc.Mapping:
                for name in ("__getitem__", "__iter__", "__len__"):
                    body.setdefault(name, raises)
            made = type("Bad", (base,), body)
            return {str: lambda: made("text"), float: lambda: made(0.5), int: lambda: made(3), dict: lambda: made(a=1),
                    list: lambda: made([1])}.get(base, made)()

        def values():
            for base in (object, dict, str, float, int, list, set, Exception, collections.abc.Mapping):
                for name in HOOKS:
                    yield value_of(base, [name])
                for name in FIELDS:
                    yield value_of(base, (), [name])
                yield value_of(base, HOOKS, FIELDS)
            class Meta(type):
                __name__ = __module__ = __instancecheck__ = property(raises)
                __repr__ = __str__ = __hash__ = __eq__ = raises
            yield Meta("Odd", (), {})
            yield Meta("Odd", (), {})()
            cycle = {"deep": 1}
            cycle.update(a=cycle, b=[cycle, cycle], c=cycle, d=cycle)
            yield cycle
            yield [cycle] * 5
        VALUES = list(values())

        def is_key(value):
            try: return {value: 1} and True
            except Exception: return False
        """)

    def test_log_keeps_the_rest_of_each_call(self):
        self.run_script(self.VALUES + textwrap.dedent("""
            run = stepladder.init()
            for i, bad in enumerate(VALUES):
                stepladder.log({"first": i, "bad": bad, "deep": {"bad": bad, "good": i}, "last": i})
                stepladder.log({"first": i, (bad if is_key(bad) else "bad"): 1.5, "last": i})
                stepladder.log({"step": i}, step=bad)
                stepladder.log({"commit": i}, commit=bad)
                stepladder.log(bad)
                with stepladder.timed_step(step=bad, tokens=bad, sync=bad):
                    pass
                with stepladder.timed_step(tokens=5):
                    pass
                run.step, run.summary["first"], run.summary.get("bad")
            """))
        events = self.only()
        count = len([value for _, value in values(events, "step")])
        self.assertGreater(count, 300)
        self.assertEqual([value for _, value in values(events, "first")], [i for i in range(count) for _ in range(2)])
        self.assertEqual(values(events, "last"), values(events, "first"))
        for name in ("step", "commit", "deep/good"):
            self.assertEqual([value for _, value in values(events, name)], list(range(count)))
        self.assertEqual(len([e for e in of_kind(events, "step") if e.get("n") == 5]), count)
        self.assertEqual(of_kind(events, "lost"), [])
        skipped = of_kind(events, "skipped")[-1]["v"]["Bad"]
        self.assertGreater(min(skipped["bad"], skipped["deep/bad"]), 100)

    def test_every_other_call_keeps_the_rest(self):
        self.run_script(self.VALUES + textwrap.dedent("""
            run = stepladder.init()
            for i, bad in enumerate(VALUES):
                key = bad if is_key(bad) else "bad"
                run.config.update({"first%d" % i: i, key: bad, "deep%d" % i: {"bad": bad, "good": i}}, bad=bad)
                run.config.update(bad); run.config.update(bad, **{"named%d" % i: i})
                run.config["bad"] = bad; run.config[bad] = i; run.config.bad = bad
                run.config.setdefault("default%d" % i, bad); run.config.setdefault(bad, i); run.config.get(bad)
                run.config.setdefaults({"late%d" % i: i, key: bad}); run.config.setdefaults(bad)
                run.config |= {"or%d" % i: bad}
                run.summary["bad"] = bad; run.summary[bad] = i; run.summary.update({"good%d" % i: i, "bad": bad})
                run.summary.get(bad); run.summary.update(bad)
                run.alert(title=bad, text="text%d" % i, level=bad); run.alert(title="title%d" % i, text=bad)
                for name in ("step_metric", "unit", "direction", "group", "goal", "summary", "hidden", "overwrite"):
                    stepladder.define_metric("metric%d" % i, **{name: bad})
                stepladder.define_metric(bad, unit="s")
                run.log_artifact(bad); run.watch(bad); stepladder.watch(bad); stepladder.save(bad)
                stepladder.login(bad); stepladder.setup(bad); stepladder.Image(bad); stepladder.Settings(a=bad)
            assert not any(thread.name != "stepladder" for thread in threading.enumerate()[1:])
            """))
        events = self.only()
        count = len({e["title"] for e in of_kind(events, "alert")} - {""}) - 0
        config = {name: value for event in of_kind(events, "config") for name, value in event["v"].items()}
        summary = {name: value for event in of_kind(events, "summary") for name, value in event["v"].items()}
        texts = {e["text"] for e in of_kind(events, "alert")}
        metrics = [e for e in of_kind(events, "metric")]
        for i in range(300):
            for name in ("first", "named", "late"):
                self.assertEqual(config[f"{name}{i}"], i)
            self.assertEqual(config[f"deep{i}"]["good"], i)
            self.assertEqual(summary[f"good{i}"], i)
            self.assertIn(f"text{i}", texts)
            self.assertEqual(len([e for e in metrics if e.get("name") == f"metric{i}"]), 8)
        self.assertGreater(count, 300)
        self.assertEqual(of_kind(events, "lost"), [])
        self.assertIn("define_metric(unit)", of_kind(events, "skipped")[-1]["v"]["Bad"])

    def test_init_and_finish_keep_the_rest(self):
        self.run_script(self.VALUES + textwrap.dedent("""
            for i, bad in enumerate(VALUES[::4] + VALUES[-5:]):
                run = stepladder.init(project=bad, name=bad, tags=[bad, "good"], notes=bad, group=bad, job_type=bad,
                                      config={"bad": bad, "good": i}, settings=bad, entity=bad, resume=bad, save_code=bad)
                assert not run.disabled
                stepladder.init(config=bad, reinit=None)
                stepladder.log({"x": i})
                run.finish(exit_code=bad)
                stepladder.init(tags=bad, config=bad, reinit=bad, id="named%d" % i)
                with stepladder.run: stepladder.log({"x": i})
                with stepladder.SummaryWriter("writer%d" % i, comment=bad) as writer:
                    writer.add_scalar("x", bad, i); writer.add_scalar("x", i, bad, bad); writer.add_scalar(bad, i)
                    writer.add_scalars("x", {"a": bad, "b": i}); writer.add_scalars(bad, bad); writer.add_text("x", bad)
                    writer.add_text(bad, "x"); writer.add_hparams({"a": bad}, bad); writer.add_hparams(bad, {"b": bad})
                    writer.add_image(bad, bad)
            for bad in VALUES[::10]:
                stepladder.init(mode=bad).finish()
                stepladder.init(id=bad).finish()
                stepladder.init(dir=bad).finish()
                stepladder.SummaryWriter(bad).close()
            print(i)
            """), STEPLADDER_SILENT="1")
        for path in self.paths():
            events = read(path)
            self.assertEqual((events[0]["e"], events[-1]["e"]), ("run", "end"))
            self.assertEqual(of_kind(events, "lost"), [])
            if any("good" in e["v"] for e in of_kind(events, "config")):
                self.assertEqual(events[0]["tags"][-1], "good")

    def test_what_stops_a_program_passes_through(self):
        for kind in ("KeyboardInterrupt", "SystemExit"):
            out, _ = self.run_script(f"""
                import stepladder
                class Stop:
                    def __str__(self): raise {kind}()
                    __float__ = __str__
                run = stepladder.init()
                for call in (lambda: stepladder.log({{"x": Stop()}}), lambda: run.config.update({{"x": Stop()}})):
                    try: call()
                    except {kind}: print("stopped")
                stepladder.log({{"x": 1, Stop(): 2}})  # the writer's thread reads this name
                stepladder.log({{"x": 2}})
                """)
            self.assertEqual(out, "stopped\nstopped\n")
            path = self.paths()[-1]
            self.assertEqual(values(read(path), "x")[-1][1], 2)
            path.unlink()

    def test_exceptions_without_a_text(self):
        for body, status in (("raise Broken()", 1), ("sys.exit(Broken())", 1), ("with run: raise Broken()", 1)):
            with self.subTest(body):
                _, err = self.run_script(f"""
                    import sys, stepladder
                    class Broken(Exception):
                        def __str__(self): raise self
                        __eq__ = __ne__ = __bool__ = __str__
                    run = stepladder.init()
                    {body}
                    """, status=status)
                self.assertNotIn("Error in sys.excepthook", err)
                end = read(self.paths()[-1])[-1]
                self.assertEqual((end["status"], end["code"]), ("failed", 1))
                self.paths()[-1].unlink()

    def test_no_line_is_too_long_or_not_json(self):
        self.run_script("""
            import sys, stepladder
            wide = chr(0x1f600)
            sys.argv += [wide * 30000] * 5
            stepladder.init(name=wide * 9999, notes=wide * 99999, tags=[wide * 9999] * 999, group=wide * 9999, id="a")
            stepladder.log({wide * 900 + str(i): i for i in range(1000)})
            stepladder.log({"text": wide * 200000})
            for i in range(300): stepladder.log({wide * 2000 + str(i): [], wide * i: type("T%d" % i, (), {})()})
            stepladder.alert(wide * 9999, wide * 999999)
            writer = stepladder.SummaryWriter("w")
            for time in ("nan", "inf", "1e300"): writer.add_scalar("x", 1, 0, walltime=float(time))
            writer.close()
            """)
        for path in self.paths():
            for line in path.read_bytes().splitlines():
                self.assertLess(len(line), 1 << 20)
                json.loads(line[:-9], parse_constant=self.fail)
        events = read(self.journals / "a" / "rank-0.1.jsonl")
        self.assertEqual(sum(len(e["v"]) for e in of_kind(events, "log")), 1000)


if __name__ == "__main__":
    unittest.main()
