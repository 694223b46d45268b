"""A ladder of one's own, edited by mouse and keyboard, launched and trained."""
import sys
import time
import unittest

from desktop_driver import Desktop, missing_tools


class Rungs(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)

    def rungs(self):
        return [title for title, in self.desktop.rows(
            "select title from runs join ladders on ladders.id = runs.ladder_id where ladders.name = 'by hand' order by rung")]

    def test_edit_and_launch(self):
        desktop = self.desktop
        desktop.start()
        desktop.go("side.launch", "launch.rungs.none")
        desktop.click("launch.rungs.none")
        for name, text in (("steps", "5"), ("batch", "4"), ("seq", "32"), ("name", "by hand")):
            self.desktop.enter(f"launch.{name}", text)
        desktop.click("launch.group.1")
        self.desktop.anchor("launch.layers")
        self.desktop.enter("launch.layers", "1")

        # A rung of one's own, wrong at first.
        desktop.click("launch.add")
        self.desktop.anchor("launch.add.own")
        desktop.click("launch.add.own")
        last = 16
        self.desktop.anchor(f"launch.rung_text.{last}")
        self.retype("mine:lr=abc", lambda: f"launch.rung_error.{last}" in desktop.ui_test_anchors())
        self.desktop.anchor("launch.problem")
        desktop.picture("rungs-error")
        self.retype("mine:lr=3e-4", lambda: f"launch.rung_error.{last}" not in desktop.ui_test_anchors())

        # Up by keys, while its text has the focus; then the rung above it is dragged below it.
        desktop.wait(lambda: self.moved_to(4), "the rung in the fifth row")
        desktop.keys("Return")
        desktop.click("launch.rung.weight-tying")
        boxes = desktop.ui_test_anchors()
        x0, y0, x1, y1 = boxes["launch.drag.1"]
        below = boxes["launch.drag.5"][1]
        desktop.xdotool("mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2))
        desktop.xdotool("mousedown", 1)
        for y in range(int(y0), int(below) + 8, 6):
            desktop.xdotool("mousemove", int((x0 + x1) / 2), y)
        time.sleep(0.5)
        desktop.xdotool("mouseup", 1)
        desktop.picture("rungs-edited")
        desktop.wait(lambda: "launch.problem" not in desktop.ui_test_anchors(), "no problem")
        desktop.start_ladder()
        desktop.wait(self.rungs, "the ladder to start")
        desktop.wait(lambda: desktop.rows("select 1 from runs where status = 'finished' and title = 'Weight tying'"), "its last rung")
        self.assertEqual(self.rungs(), ["Baseline", "mine", "Weight tying"])
        self.assertEqual(desktop.rows("select changed from runs where title = 'mine'"), [("lr 0.001 -> 3e-04",)])
        desktop.picture("rungs-live")
        self.assertEqual(desktop.stop(), 0)

    def retype(self, text, is_taken):
        """Replaces the text of the focused field, once more if a slow window has lost keys."""
        def typed():
            self.desktop.keys("ctrl+a")
            self.desktop.xdotool("type", "--delay", 30, text)
            deadline = time.monotonic() + 5
            while not is_taken() and time.monotonic() < deadline:
                time.sleep(0.05)
            return is_taken()
        self.desktop.wait(typed, text)

    def own_place(self):
        """Of the rung of one's own: only its check box is named by its place."""
        names = [name.removeprefix("launch.rung.") for name in self.desktop.ui_test_anchors() if name.startswith("launch.rung.")]
        return next((int(name) for name in names if name.isdigit()), None)

    def moved_to(self, place):
        """Presses a key once, unless the rung of one's own is there."""
        before = self.own_place()
        if before is None or before == place:
            return before == place
        self.desktop.keys("alt+Up" if before > place else "alt+Down")
        deadline = time.monotonic() + 5
        while self.own_place() == before and time.monotonic() < deadline:
            time.sleep(0.05)
        return False


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
