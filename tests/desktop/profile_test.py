"""The Profile view in a real window: a trace imported, a second one compared with it, zoomed by wheel and keys, searched."""
import json
import sqlite3
import subprocess
import sys
import time
import unittest

from desktop_driver import BUILD, Desktop, missing_tools
from program import SMALLEST


def trace(path, gelu_us, operators=200):
    """A step of many operators, whose last is slower in one of two traces."""
    events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": operators * 10 + gelu_us}]
    for i in range(operators):
        name = ("aten::linear", "aten::layer_norm", "aten::add", "aten::copy_")[i % 4]
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": i * 10, "dur": 9})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": i * 10 + 1, "dur": 6})
    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::gelu", "pid": 1, "tid": 1, "ts": operators * 10, "dur": gelu_us})
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


class Profile(unittest.TestCase):
    def test_two_traces(self):
        desktop = Desktop()
        self.addCleanup(desktop.close)
        desktop.start()
        desktop.go("side.profile", "profile.empty")
        desktop.picture("profile-empty")
        def import_trace(path):
            subprocess.run([BUILD / "stepladder", "--db", desktop.database, "profile", "import", path], check=True, capture_output=True)
        # Another program imports: the window notices.
        import_trace(trace(desktop.path / "slow.json", 900))
        desktop.anchor("profile.after")
        desktop.picture("profile-one")
        import_trace(trace(desktop.path / "fast.json", 100))
        desktop.click("profile.before.source")
        desktop.settled()
        desktop.picture("profile-sources")
        desktop.keys("Down", "Down", "Return")
        desktop.anchor("profile.before")
        desktop.settled()
        desktop.picture("profile-two")
        x0, y0, x1, y1 = desktop.ui_test_anchors()["profile.after"]
        desktop.xdotool("mousemove", int(x0 + (x1 - x0) * 0.3), int(y0 + 50))
        before = desktop.pixels()[2]
        desktop.xdotool("click", "--repeat", 8, 4)  # the wheel: in
        desktop.wait(lambda: desktop.pixels()[2] != before, "a zoomed step")
        desktop.picture("profile-zoomed")
        zoomed = desktop.pixels()[2]
        desktop.xdotool("mousedown", 1)
        desktop.xdotool("mousemove_relative", "--", 120, 0)
        desktop.xdotool("mouseup", 1)
        desktop.wait(lambda: desktop.pixels()[2] != zoomed, "a step that was dragged")
        for key in ("w", "d", "a", "s", "Left", "Up", "Home"):
            desktop.keys(key)
        desktop.drawn()
        # F fits the clicked slice, and then the whole step again.
        desktop.xdotool("mousemove", int(x0 + (x1 - x0) * 0.9), int(y0 + 50))
        desktop.xdotool("click", 1)
        desktop.anchor("profile.chosen")
        whole = desktop.drawn()
        desktop.keys("f")
        desktop.wait(lambda: desktop.pixels()[2] != whole, "a slice in full width")
        desktop.picture("profile-fitted")
        desktop.keys("f")
        desktop.wait(lambda: desktop.pixels()[2] == whole, "the whole step")
        desktop.fill("profile.search", "gelu")
        desktop.settled()
        desktop.picture("profile-search")
        desktop.click("profile.tab.1")
        desktop.settled()
        desktop.picture("profile-operators")
        self.assertEqual(desktop.rows("select count(*) from trace_slices"), [(2,)])
        # The list removes a trace, and Ctrl+Z brings it back.
        desktop.click("profile.before.source")
        desktop.settled()
        desktop.click("profile.remove.1")
        desktop.wait(lambda: desktop.rows("select count(*) from traces") == [(1,)], "a removed trace")
        desktop.keys("Escape")
        desktop.keys("ctrl+z")
        desktop.wait(lambda: desktop.rows("select count(*), count(distinct name) from traces") == [(2, 2)], "the trace again")
        self.assertEqual(desktop.rows("select count(*) from trace_slices"), [(2,)])
        self.assertEqual(desktop.rows("select id from traces order by id"), [(1,), (2,)])
        # Passes: made up here, since timing them takes minutes on a slow machine.
        with sqlite3.connect(desktop.database, timeout=60) as database:
            for number, ms in ((1, 20.0), (2, 5.0)):
                database.execute("insert into passes (id, name, measured_at, hardware, device, model, batch, seq, vocab, is_synced) "
                                 "values (?, ?, 1, 'H', 'cuda', 'seed-small', 2, 64, 10000, 1)", (number, f"machine {number}"))
                for computation, factor in (("forward", 1), ("backward", 2), ("forward_backward", 3)):
                    for call in range(5):
                        database.execute("insert into pass_calls values (?, ?, 'fp32', 1, ?, ?)", (number, computation, call, ms * factor + call / 10))
        desktop.click("profile.subject.1")
        desktop.anchor("profile.passes.one")
        desktop.click("profile.passes.before")
        desktop.settled()
        desktop.keys("Down", "Down", "Return")
        desktop.anchor("profile.passes.compared")
        desktop.settled()
        desktop.picture("profile-passes")

    def test_a_run_is_traced_by_its_button(self):
        desktop = Desktop()
        self.addCleanup(desktop.close)
        trained = subprocess.run([BUILD / "stepladder", "--db", desktop.database, "train", *SMALLEST, "--steps", "30", "--device", "cpu"],
                                 capture_output=True, text=True)
        if trained.returncode != 0 and "built without" in trained.stderr:
            self.skipTest("needs LibTorch")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        desktop.start()
        desktop.go("side.run", "run.trace")
        desktop.settled()
        desktop.picture("run-trace")
        desktop.click("run.trace")
        of_run = "select run_id, format from traces"
        desktop.wait(lambda: desktop.rows(of_run), "the trace", 240)
        runs = desktop.rows("select max(id) from runs")
        self.assertEqual(desktop.rows(of_run), [(runs[0][0], "stepladder")])
        desktop.anchor("profile.after")
        desktop.settled()
        desktop.picture("profile-traced-run")
        self.assertEqual(desktop.stop(), 0)

    def test_ranks_in_the_light(self):
        """Ranks of one trace, in the light scheme: the one that the others wait for is named."""
        desktop = Desktop()
        self.addCleanup(desktop.close)
        files = []
        for rank, late in enumerate((0, 150, 4, 9)):
            events, at = [], 0
            for step in range(4):
                us = 900 + late + 7 * step
                events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 1200})
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at, "dur": us})
                events.append({"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 1, "tid": 1, "ts": at + us, "dur": 1200 - us})
                at += 1200
            files.append(desktop.path / f"rank{rank}.json")
            files[-1].write_text(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}))
        subprocess.run([BUILD / "stepladder", "--db", desktop.database, "profile", "import", *files], check=True, capture_output=True)
        desktop.start()
        desktop.go("side.profile", "profile.after")
        desktop.keys("ctrl+t")
        desktop.click("profile.tab.4")
        desktop.anchor("profile.straggler")
        desktop.settled()
        desktop.picture("profile-ranks")
        desktop.click("profile.tab.3")
        desktop.settled()
        desktop.click("profile.row.0")
        desktop.anchor("profile.chosen")
        desktop.settled()
        desktop.picture("profile-kind-chosen")
        self.assertEqual(desktop.stop(), 0)

    def drag(self, desktop, start, end):
        desktop.xdotool("mousemove", int(start[0]), int(start[1]))
        desktop.xdotool("mousedown", 1)
        desktop.xdotool("mousemove", int((start[0] + end[0]) / 2), int(end[1]))
        time.sleep(0.1)
        desktop.xdotool("mousemove", int(end[0]), int(end[1]))
        time.sleep(0.1)
        desktop.xdotool("mouseup", 1)

    def test_the_example_and_the_moves(self):
        """A real pair in one click; then what one does with it: measure, choose by row and by slice, sort, search, compare three."""
        desktop = Desktop(1280, 720)
        self.addCleanup(desktop.close)
        desktop.start()
        desktop.go("side.profile", "profile.empty")
        desktop.settled()
        desktop.picture("profile-empty-720")
        desktop.click("profile.example")
        desktop.wait(lambda: {"profile.before", "profile.after", "profile.row.0"} <= set(desktop.ui_test_anchors()), "both steps")
        desktop.settled()
        desktop.picture("profile-example-720")
        x0, y0, x1, _ = desktop.ui_test_anchors()["profile.icicle"]
        self.drag(desktop, (x0 + (x1 - x0) * 0.3, y0 + 8), (x0 + (x1 - x0) * 0.6, y0 + 8))
        desktop.anchor("profile.range")
        desktop.settled()
        desktop.picture("profile-range-720")
        desktop.xdotool("mousemove", int(x0 + (x1 - x0) * 0.66), int(desktop.ui_test_anchors()["profile.after"][1] + 30))
        desktop.settled()
        desktop.picture("profile-tooltip-720")
        desktop.click("profile.range.clear")
        desktop.wait(lambda: "profile.range" not in desktop.ui_test_anchors(), "the whole step")
        # With Shift over the rows, and ended by Escape.
        desktop.xdotool("keydown", "shift")
        y = desktop.ui_test_anchors()["profile.after"][1] + 30
        self.drag(desktop, (x0 + (x1 - x0) * 0.7, y), (x0 + (x1 - x0) * 0.8, y))
        desktop.xdotool("keyup", "shift")
        desktop.anchor("profile.range")
        desktop.keys("Escape")
        desktop.wait(lambda: "profile.range" not in desktop.ui_test_anchors(), "the whole step again", 20)
        desktop.click("profile.row.2")
        desktop.anchor("profile.chosen")
        desktop.settled()
        desktop.picture("profile-row-chosen")
        desktop.click("profile.search")
        desktop.xdotool("type", "--delay", 30, "flash")
        desktop.keys("Return", "Return")
        hits = lambda: [name for name in desktop.ui_test_anchors() if name.startswith("profile.hits.2 of ")]
        desktop.wait(hits, "the second hit")
        desktop.settled()
        desktop.picture("profile-hit")
        desktop.keys("shift+Return")
        desktop.wait(lambda: any(name.startswith("profile.hits.1 of ") for name in desktop.ui_test_anchors()), "the first hit again")
        desktop.keys("ctrl+a", "BackSpace", "Escape")
        desktop.click("profile.tab.1")
        desktop.settled()
        before = desktop.pixels()[2]
        desktop.click("profile.sort.3")
        desktop.wait(lambda: desktop.pixels()[2] != before, "another order")
        desktop.picture("profile-sorted")
        # A third trace beside these two, and all three in History.
        path = trace(desktop.path / "third.json", 900)
        subprocess.run([BUILD / "stepladder", "--db", desktop.database, "import", path], check=True, capture_output=True)
        desktop.anchor("profile.more")
        desktop.settled()
        desktop.click("profile.more")
        desktop.click("profile.more.0")
        desktop.keys("Escape")
        desktop.anchor("profile.several")
        desktop.settled()
        desktop.picture("profile-several")
        desktop.go("side.history", "history.trace.3")
        desktop.settled()
        desktop.picture("history-traces")
        desktop.click("history.trace.3")
        desktop.wait(lambda: "profile.after" in desktop.ui_test_anchors() and "profile.before" not in desktop.ui_test_anchors(), "it alone")
        self.assertEqual(desktop.stop(), 0)


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
