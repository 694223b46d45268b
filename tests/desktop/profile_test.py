"""The Profile view in a real window: a trace imported, a second one compared with it, zoomed by wheel and keys, searched."""
import json
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
        desktop.fill("profile.search", "gelu")
        desktop.settled()
        desktop.picture("profile-search")
        desktop.click("profile.tab.1")
        desktop.settled()
        desktop.picture("profile-operators")
        self.assertEqual(desktop.rows("select count(*) from trace_slices"), [(2,)])


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
