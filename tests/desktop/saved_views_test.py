"""Any metric in History by real mouse: columns, a filter, a saved view that the palette opens after a restart."""
import subprocess
import sys
import time
import unittest

from desktop_driver import BUILD, PICTURES, Desktop, missing_tools

LOG = "".join(f"step {step} | loss {{loss:.2f}} | val/acc: {{acc:.3f}} | dt 50.1ms\n" for step in range(1, 5))


class SavedViews(unittest.TestCase):
    def setUp(self):
        self.desktop = Desktop()
        self.addCleanup(self.desktop.close)

    def program(self, *arguments):
        done = subprocess.run([BUILD / "stepladder", *map(str, arguments)], env=self.desktop.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def shows(self, *anchors):
        self.desktop.wait(lambda: set(anchors) <= set(self.desktop.ui_test_anchors()), ", ".join(anchors))

    def lacks(self, *anchors):
        self.desktop.wait(lambda: not set(anchors) & set(self.desktop.ui_test_anchors()), "no " + ", ".join(anchors))

    def leave(self, anchor):
        """Presses Escape until the list with this anchor is closed."""
        def is_closed():
            if anchor in self.desktop.ui_test_anchors():
                self.desktop.keys("Escape")
                time.sleep(0.3)
            return anchor not in self.desktop.ui_test_anchors()
        self.desktop.wait(is_closed, "no " + anchor)

    def test_columns_filter_and_view_come_back_after_a_restart(self):
        for number in range(1, 5):
            log = self.desktop.path / f"run{number}.log"
            log.write_text(LOG.format(loss=4 - number / 10, acc=number / 8))
            self.program("import", log)
        self.desktop.start()
        self.desktop.keys("ctrl+5")
        self.shows("history.columns", "history.run.1", "history.run.4")
        self.desktop.go("history.columns", "history.figure.max")
        self.desktop.click("history.figure.max")
        self.desktop.enter("history.column_search", "val/*")
        self.shows("history.head.max(val/acc)")
        self.desktop.click("history.shows.1")
        self.shows("history.column.max(val/acc) - baseline")
        self.desktop.click("history.column.max(val/acc) - baseline")
        self.shows("history.head.max(val/acc) - baseline")
        self.desktop.picture("history-columns")
        self.leave("history.column_search")
        # A real drag of a head changes the order.
        x0, y0, x1, y1 = self.desktop.settled()["history.head.max(val/acc) - baseline"]
        u0, _, u1, _ = self.desktop.ui_test_anchors()["history.head.max(val/acc)"]
        self.assertLess(u0, x0)
        self.desktop.xdotool("mousemove", int((x0 + x1) / 2), int((y0 + y1) / 2))
        time.sleep(0.3)
        self.desktop.xdotool("mousedown", 1)
        for step in range(1, 9):
            self.desktop.xdotool("mousemove", int((x0 + x1) / 2 + ((u0 + u1) / 2 - 20 - (x0 + x1) / 2) * step / 8), int((y0 + y1) / 2))
            time.sleep(0.1)
        self.desktop.xdotool("mouseup", 1)
        self.desktop.wait(lambda: self.desktop.ui_test_anchors()["history.head.max(val/acc) - baseline"][0]
                          < self.desktop.ui_test_anchors()["history.head.max(val/acc)"][0], "the dragged order")
        self.desktop.enter("history.filter", "max(val/acc) > 0.2")
        self.lacks("history.run.1")
        self.shows("history.run.2", "history.run.4")
        self.desktop.settled()
        self.desktop.go("history.run.3", "history.metric.0")
        self.desktop.go("history.views", "views.name")
        self.desktop.enter("views.name", "night shift")
        self.shows("views.open.night shift")
        self.desktop.picture("history-views")
        self.leave("views.name")
        self.desktop.fill("history.filter", "")
        self.desktop.keys("BackSpace")
        self.shows("history.run.1")
        self.desktop.keys("ctrl+8")
        self.lacks("history.run.1")
        self.assertEqual(self.desktop.stop(), 0)

        self.desktop.start()
        self.lacks("history.run.2")
        self.desktop.settled()
        self.desktop.keys("ctrl+k")
        self.shows("palette.typed")
        self.desktop.xdotool("type", "--delay", 30, "open view night")
        self.desktop.settled()
        self.desktop.keys("Return")
        self.shows("history.run.2", "history.run.4", "history.head.max(val/acc) - baseline", "history.metric.0")
        self.lacks("history.run.1")
        anchors = self.desktop.settled()
        self.assertLess(anchors["history.head.max(val/acc) - baseline"][0], anchors["history.head.max(val/acc)"][0])
        self.desktop.picture("history-view-opened")
        self.assertEqual(self.desktop.stop(), 0)
        self.program("screenshot", "--saved-view", "night shift", "--out", PICTURES / "saved-view.png")


if __name__ == "__main__":
    if missing_tools():
        print("skipped: needs", ", ".join(missing_tools()))
        sys.exit(77)
    unittest.main(verbosity=2)
