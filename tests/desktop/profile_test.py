"""The Profile view in a real window: a trace imported, a second one compared with it, zoomed by wheel and keys, searched."""
import json
import sqlite3
import subprocess
import sys
import unittest

from desktop_driver import BUILD, Desktop, missing_tools


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
        desktop.settled()
        # F fits the clicked slice, and then the whole step again.
        desktop.xdotool("mousemove", int(x0 + (x1 - x0) * 0.9), int(y0 + 50))
        desktop.xdotool("click", 1)
        desktop.anchor("profile.chosen")
        desktop.settled()
        whole = desktop.pixels()[2]
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


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
